"""What Crossplane would have in the cluster: its kinds, our definitions and Compositions."""

import json
from pathlib import Path

import yaml

from cluster import ROOT, Cluster, Object

GROUP = "apiextensions.crossplane.io"
KINDS = {
    "CompositeResourceDefinition": ("compositeresourcedefinitions", "v1", "v2"),
    "Composition": ("compositions", "v1"),
    "EnvironmentConfig": ("environmentconfigs", "v1beta1"),
}
NAMES = "Namespaced"
CATALOGUE = "environmentconfigs.apiextensions.crossplane.io"


def install(cluster: Cluster) -> None:
    """The kinds of Crossplane, and the platform of the examples."""
    cluster.apply(
        *(kind(GROUP, name, *of) for name, of in KINDS.items()),
        kind("platform.acme.io", "GpuDevWorkspace", "gpudevworkspaces", "v1alpha1"),
        kind("gpu.platform.acme.io", "SpotPool", "spotpools", "v1alpha1", scope=NAMES),
    )
    cluster.kubectl("wait", "crd", "--all", "--for=condition=Established")
    reset(cluster)


def reset(cluster: Cluster) -> None:
    """The platform as the examples have it."""
    for path in (
        *sorted((ROOT / "xrds").glob("*.yaml")),
        *sorted((ROOT / "compositions").glob("*.yaml")),
        ROOT / "examples/platform/catalogue.yaml",
    ):
        cluster.apply(*documents(path))


def documents(path: Path) -> list[Object]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


def composition(name: str) -> Object:
    (found,) = documents(ROOT / f"compositions/{name}.yaml")
    return found


def kind(
    group: str, name: str, plural: str, *versions: str, scope: str = "Cluster"
) -> Object:
    """A kind with any fields: what Crossplane checks has its own tests with Crossplane."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": name, "plural": plural, "singular": name.lower()},
            "scope": scope,
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == versions[-1],
                    "schema": {"openAPIV3Schema": anything},
                }
                for version in versions
            ],
        },
    }


def composes(
    cluster: Cluster, namespace: str, name: str, region: str = "us-east-1"
) -> None:
    """Makes the composite of a claim with a pool whose machine runs, as Crossplane and the provider do."""
    claim = cluster.get("gpudevworkspaceclaims.platform.acme.io", namespace, name)
    composite, pool = f"{name}-x1y2z", f"{name}-pool"
    reference = {
        "apiVersion": "gpu.platform.acme.io/v1alpha1",
        "kind": "SpotPool",
        "namespace": namespace,
        "name": pool,
    }
    cluster.apply(
        {
            "apiVersion": "platform.acme.io/v1alpha1",
            "kind": "GpuDevWorkspace",
            "metadata": {
                "name": composite,
                "labels": {
                    "crossplane.io/claim-namespace": namespace,
                    "crossplane.io/claim-name": name,
                },
            },
            "spec": {
                "parameters": claim["spec"]["parameters"],
                "claimRef": {"namespace": namespace, "name": name},
                "resourceRefs": [reference],
            },
            "status": {"region": region, "phase": "Ready"},
        },
        {
            "apiVersion": reference["apiVersion"],
            "kind": reference["kind"],
            "metadata": {
                "name": pool,
                "namespace": namespace,
                "annotations": {"crossplane.io/composition-resource-name": "pool"},
            },
            "spec": composed("new-workspace", "pool")["spec"],
        },
    )
    refers(cluster, namespace, name, composite)


def counts_money(cluster: Cluster) -> None:
    """The platform gives its users budgets."""
    for name in ("gpudevworkspaces", "devusers"):
        counting = composition(name)
        counting["spec"]["pipeline"][0]["input"]["budgets"] = {}
        cluster.apply(counting)


def budget(cluster: Cluster, user: str, usd: float | None) -> None:
    """The budget of a user for a month."""
    said = None if usd is None else {"monthlyUsd": usd}
    patch = json.dumps({"spec": {"budget": said}})
    cluster.kubectl("patch", "devuser", user, "--type=merge", "-p", patch)


def composes_pods(cluster: Cluster, namespace: str, name: str) -> None:
    """Makes the composite of a claim whose pods run."""
    claim = cluster.get("gpudevworkspaceclaims.platform.acme.io", namespace, name)
    parameters = claim["spec"]["parameters"]
    composite = f"{name}-x1y2z"
    cluster.apply(
        {
            "apiVersion": "platform.acme.io/v1alpha1",
            "kind": "GpuDevWorkspace",
            "metadata": {"name": composite},
            "spec": {
                "parameters": parameters,
                "claimRef": {"namespace": namespace, "name": name},
            },
            "status": {"phase": "Ready", "pods": {"flavor": parameters["flavor"]}},
        }
    )
    refers(cluster, namespace, name, composite)


def refers(cluster: Cluster, namespace: str, name: str, composite: str) -> None:
    patch = json.dumps({"spec": {"resourceRef": {"name": composite}}})
    cluster.kubectl(
        *("patch", "gpudevworkspaceclaims", name, "-n", namespace),
        *("--type=merge", "-p", patch),
    )


def composed(case: str, resource: str) -> Object:
    """What the function desires in one of its cases."""
    path = ROOT / f"function/tests/cases/{case}/response.yaml"
    desired = yaml.safe_load(path.read_text())["desired"]["resources"]
    found: Object = desired[resource]["resource"]
    return found
