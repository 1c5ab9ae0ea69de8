"""The loss of a control plane: its objects are gone, and AWS does not know it."""

import json

from environment.cluster import CLAIMS, SYSTEM, Cluster
from environment.pools import IDENTITY, PODS, identity
from environment.waiting import until

# The kinds that docs/disaster-recovery.md backs up, and those that Crossplane and the
# provider make again by themselves.
KINDS = [
    CLAIMS,
    "gpudevworkspaces.platform.acme.io",
    "spotleases.gpu.platform.acme.io",
    "spotpools.gpu.platform.acme.io",
    "providerconfigusages.gpu.platform.acme.io",
]


def lose_everything(cluster: Cluster, namespace: str) -> None:
    """Removes every object of our kinds, the team's Namespace, and the control plane's
    identity, while no controller runs. Afterwards the packages run as if they had just
    been installed: the provider has made another identity."""
    deployments = _deployments(cluster)
    for name in deployments:
        _scale(cluster, name, 0)
    until("the provider to stop", lambda: not cluster.pods(PODS))
    for kind in KINDS:
        _remove(cluster, kind)
    cluster.kubectl("delete", "namespace", namespace, "--timeout=120s")
    cluster.kubectl("delete", "configmap,secret", IDENTITY, "-n", SYSTEM)
    for name in deployments:
        _scale(cluster, name, 1)
    until("the provider to run", lambda: _made_another_identity(cluster), 120)


def _deployments(cluster: Cluster) -> list[str]:
    """Crossplane first: it would start the provider again."""
    found = [one["metadata"]["name"] for one in cluster.all("deployments", SYSTEM)]
    ours = [name for name in found if name.startswith("acme-provider-gpu-spot-")]
    return ["crossplane", *ours]


def _scale(cluster: Cluster, deployment: str, replicas: int) -> None:
    cluster.kubectl(
        *("scale", "deployment", deployment, "-n", SYSTEM, f"--replicas={replicas}")
    )
    cluster.kubectl("rollout", "status", "deployment", deployment, "-n", SYSTEM)


def _remove(cluster: Cluster, kind: str) -> None:
    listed = json.loads(cluster.kubectl("get", kind, "-A", "-o", "json"))["items"]
    for one in listed:
        name, namespace = one["metadata"]["name"], one["metadata"].get("namespace")
        place = ["-n", namespace] if namespace else []
        patch = '{"metadata": {"finalizers": null}}'
        cluster.kubectl("patch", kind, name, *place, "--type=merge", "-p", patch)
        cluster.kubectl("delete", kind, name, *place, "--ignore-not-found")


def _made_another_identity(cluster: Cluster) -> bool:
    return bool(cluster.pods(PODS)) and identity(cluster) is not None
