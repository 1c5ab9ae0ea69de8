"""Writes Argo CD's configuration from health/*.lua, actions/*.yaml and exclusions.yaml.

cargo xtask python argocd/generate.py
"""

from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent

# Each health script, and the kinds whose health it computes, by API group.
KINDS = {
    "workspaces": {
        "platform.acme.io": [
            "DevUser",
            "GpuDevWorkspace",
            "GpuDevWorkspaceClaim",
            "WorkspaceFlavor",
        ],
    },
    "managed": {
        "gpu.platform.acme.io": ["SpotLease", "SpotPool"],
        "ec2.aws.m.upbound.io": [
            "EBSVolume",
            "Instance",
            "InstanceState",
            "SecurityGroup",
            "SecurityGroupRule",
            "VolumeAttachment",
        ],
    },
    "packages": {"pkg.crossplane.io": ["Configuration", "Function", "Provider"]},
    "definitions": {"apiextensions.crossplane.io": ["CompositeResourceDefinition"]},
}

# The same with wildcards. Only one of them may match a kind: if several match, Argo CD
# uses any of them.
WILDCARDS = {
    "workspaces": ["platform.acme.io/*"],
    "managed": ["gpu.platform.acme.io/Spot*", "*.aws.m.upbound.io/*"],
    "packages": [
        "pkg.crossplane.io/Configuration",
        "pkg.crossplane.io/Function",
        "pkg.crossplane.io/Provider",
    ],
    "definitions": ["apiextensions.crossplane.io/CompositeResourceDefinition"],
}

# The kind that each file of actions/ has actions for. Argo CD has none for it.
ACTIONS = {
    "applications": "argoproj.io/Application",
    "workspaces": "platform.acme.io/GpuDevWorkspaceClaim",
}

# Argo CD's Kubernetes client requests every kind that Crossplane providers install. Its
# default rate limit is too low for so many.
CLIENT = {"env": [{"name": "ARGOCD_K8S_CLIENT_QPS", "value": "300"}]}

HEADER = """\
# Written by argocd/generate.py: `cargo xtask python argocd/generate.py` does it anew.
"""
PURPOSES = {
    "argocd-cm.yaml": "# The patch of the component in kustomization.yaml.\n",
    "values.yaml": """\
# For the Helm chart argo-cd (argo-helm). One key for each kind: it goes together with
# other values files, and with Argo CDs that take no wildcards.
""",
    "values-wildcards.yaml": """\
# As values.yaml, and every kind of upbound's AWS providers. Wildcards are taken in
# `resource.customizations` only, which another values file replaces whole.
""",
}


class Text(str):
    """A text of several lines. The YAML has it once, and aliases of it elsewhere."""


class Dumper(yaml.SafeDumper):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        return not isinstance(data, Text)

    def generate_anchor(self, node: yaml.Node) -> str:
        return ANCHORS[node.value]


def represent_text(dumper: yaml.SafeDumper, text: Text) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|")


Dumper.add_representer(Text, represent_text)


def script(name: str) -> Text:
    """A complete health script, because Argo CD runs each script without the others."""
    parts = [HERE / "health" / f"{part}.lua" for part in ("conditions", name)]
    return Text("\n".join(part.read_text() for part in parts))


def actions(name: str) -> Text:
    return Text((HERE / f"actions/{name}.yaml").read_text())


SCRIPTS = {name: script(name) for name in KINDS}
ANCHORS = {str(text): name for name, text in SCRIPTS.items()}


def settings() -> dict[str, Any]:
    """The settings that both forms have."""
    return {
        # Argo CD's default since 3.0. Crossplane copies labels from claims, so tracking
        # by label would make Argo CD take composites for its own resources.
        "application.resourceTrackingMethod": "annotation",
        "resource.exclusions": Text((HERE / "exclusions.yaml").read_text()),
    }


def by_kind() -> dict[str, Any]:
    """`data` of argocd-cm, one key for each kind."""
    health = {
        f"resource.customizations.health.{group}_{kind}": SCRIPTS[name]
        for name, groups in KINDS.items()
        for group, kinds in groups.items()
        for kind in kinds
    }
    of_kinds = {
        f"resource.customizations.actions.{kind.replace('/', '_')}": actions(name)
        for name, kind in ACTIONS.items()
    }
    return settings() | health | of_kinds


def by_wildcard() -> dict[str, Any]:
    """`data` of argocd-cm, with all health checks and actions under one key."""
    customizations: dict[str, Any] = {
        pattern: {"health.lua": SCRIPTS[name]}
        for name, patterns in WILDCARDS.items()
        for pattern in patterns
    }
    # Argo CD takes wildcards for health only.
    for name, kind in ACTIONS.items():
        customizations[kind] = {"actions": actions(name)}
    return settings() | {"resource.customizations": Text(dumped(customizations))}


def config_map(data: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "argocd-cm"},
        "data": data,
    }


def values(data: dict[str, Any]) -> dict[str, Any]:
    return {"configs": {"cm": data}, "controller": CLIENT, "server": CLIENT}


def dumped(content: dict[str, Any]) -> str:
    text: str = yaml.dump(content, Dumper=Dumper, sort_keys=False, width=1000)
    return text


def files() -> dict[str, str]:
    """Every generated file, by name."""
    contents = {
        "argocd-cm.yaml": config_map(by_kind()),
        "values.yaml": values(by_kind()),
        "values-wildcards.yaml": values(by_wildcard()),
    }
    return {
        name: HEADER + PURPOSES[name] + dumped(content)
        for name, content in contents.items()
    }


def main() -> None:
    for name, text in files().items():
        (HERE / name).write_text(text)


if __name__ == "__main__":
    main()
