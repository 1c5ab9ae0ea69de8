"""The bastion's manifests on the local cluster."""

from pathlib import Path

import yaml

from bastion.door import NAMESPACE
from environment import registry, variants
from environment.cluster import Cluster

ROOT = Path(__file__).parents[4]
LABELS = {"app.kubernetes.io/name": "gpu-bastion"}


def install(cluster: Cluster) -> None:
    """Two replicas of the bastion, and Compositions that know it. Owners have no rights of
    their own then."""
    peers = {"bastion": {"namespace": NAMESPACE, "podLabels": LABELS}}
    variants.composition(cluster, "gpudevworkspaces", peers)
    access = {"access": "Bastion"}
    variants.composition(cluster, "devusers", access, of="devusers")
    reference = registry.newest("images/bastion", "bastion")
    for name in ("bastion", "constrained-impersonation"):
        text = (ROOT / f"bastion/manifests/{name}.yaml").read_text()
        for document in yaml.safe_load_all(text.replace("IMAGE", reference)):
            cluster.apply(document)
    cluster.kubectl(
        *("rollout", "status", "statefulset/gpu-bastion", "-n", NAMESPACE),
        "--timeout=180s",
    )
