"""What Crossplane would have in the cluster: its kinds, our definitions and Compositions."""

from pathlib import Path

import yaml

from cluster import ROOT, Cluster, Object

GROUP = "apiextensions.crossplane.io"
KINDS = {
    "CompositeResourceDefinition": ("compositeresourcedefinitions", "v1", "v2"),
    "Composition": ("compositions", "v1"),
    "EnvironmentConfig": ("environmentconfigs", "v1beta1"),
}
CATALOGUE = "environmentconfigs.apiextensions.crossplane.io"


def install(cluster: Cluster) -> None:
    """The kinds of Crossplane, and the platform of the examples."""
    cluster.apply(*(kind(name, *of) for name, of in KINDS.items()))
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


def kind(name: str, plural: str, *versions: str) -> Object:
    """A kind with any fields: what Crossplane checks has its own tests with Crossplane."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"kind": name, "plural": plural, "singular": name.lower()},
            "scope": "Cluster",
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
