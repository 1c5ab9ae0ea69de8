"""The ports of function and provider. Only Crossplane and Prometheus reach them."""

import uuid
from collections.abc import Iterator

import pytest

from cluster.connecting import CONNECT
from cluster.workspaces import Workspaces
from environment.cluster import CLAIMS, Cluster, is_ready
from environment.pools import PODS as PROVIDER
from environment.waiting import until

FUNCTION = "function=acme-function-gpu-workspace"
# Of examples/platform/crossplane-network.yaml.
MONITORING = "monitoring"
PROMETHEUS = {"app.kubernetes.io/name": "prometheus"}


class Visitors:
    """Pods that no NetworkPolicy of their own restricts."""

    def __init__(self, cluster: Cluster, image: str) -> None:
        self.cluster = cluster
        self.image = image

    def arrive(self, namespace: str, name: str, labels: dict[str, str]) -> None:
        container = {
            "name": "visitor",
            "image": self.image,
            "command": ["/bin/sleep", "infinity"],
        }
        self.cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": namespace, "labels": labels},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
            }
        )
        until(
            f"pod {name} to be Ready",
            lambda: is_ready(self.cluster.get("pods", name, namespace)),
        )

    def reached(self, namespace: str, name: str, targets: list[str]) -> set[str]:
        said = self.cluster.kubectl(
            *("exec", "-i", "-n", namespace, name, "--"),
            *("/usr/bin/python3", "-", *targets),
            stdin=CONNECT,
        )
        return reached(said, targets)


def reached(said: str, targets: list[str]) -> set[str]:
    answers = dict(line.split() for line in said.splitlines())
    assert list(answers) == targets, said
    return {target for target, answer in answers.items() if answer == "reached"}


def addresses(cluster: Cluster, package: str, port: int) -> list[str]:
    return [f"{pod['status']['podIP']}:{port}" for pod in cluster.pods(package)]


@pytest.fixture
def visitors(cluster: Cluster, image: str) -> Iterator[tuple[Visitors, str]]:
    """Prometheus, a neighbour of it, and a pod of another namespace."""
    elsewhere = f"visitors-{uuid.uuid4().hex[:6]}"
    cluster.create_namespace(elsewhere)
    cluster.create_namespace(MONITORING)
    visitors = Visitors(cluster, image)
    visitors.arrive(elsewhere, "stranger", PROMETHEUS)
    visitors.arrive(MONITORING, "neighbour", {})
    visitors.arrive(MONITORING, "prometheus", PROMETHEUS)
    yield visitors, elsewhere
    cluster.delete_namespace(elsewhere)
    cluster.kubectl("delete", "namespace", MONITORING, "--timeout=60s")


def test_workspaces_and_strangers_reach_no_port_of_the_control_plane(
    cluster: Cluster, alice: Workspaces, visitors: tuple[Visitors, str]
) -> None:
    alice.claim("vision")
    alice.ready("vision", seconds=120)
    metrics = addresses(cluster, FUNCTION, 8080) + addresses(cluster, PROVIDER, 8080)
    targets = metrics + addresses(cluster, FUNCTION, 9443)
    assert len(targets) >= 3, targets

    said = alice.run("vision", "python", "-", *targets, stdin=CONNECT)
    assert reached(said, targets) == set()
    pods, elsewhere = visitors
    assert pods.reached(elsewhere, "stranger", targets) == set()
    assert pods.reached(MONITORING, "neighbour", targets) == set()
    # The ports answer, so the others were refused.
    assert pods.reached(MONITORING, "prometheus", targets) == set(metrics)

    # Crossplane still calls the function.
    alice.claim("notebook")
    alice.ready("notebook", seconds=120)
    alice.delete("notebook")
    until(
        "the claim to be deleted",
        lambda: cluster.get(CLAIMS, "notebook", alice.namespace) is None,
    )
