"""The ports of function and provider. Only Crossplane and Prometheus reach them."""

import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cluster.connecting import CONNECT, OCCUPY
from cluster.workspaces import Workspaces
from environment.cluster import CLAIMS, SYSTEM, Cluster, is_ready
from environment.pools import PODS as PROVIDER
from environment.waiting import until

# The tests create the namespace of the example's NetworkPolicy, so they run one by one.
pytestmark = pytest.mark.xdist_group("control-plane")

FUNCTION = "function=acme-function-gpu-workspace"
# Of examples/platform/crossplane-network.yaml.
MONITORING = "monitoring"
PROMETHEUS = {"app.kubernetes.io/name": "prometheus"}
# The label by which the NetworkPolicy knows Crossplane.
CROSSPLANE = {"app": "crossplane"}
STRANGERS = 2000
# Prints how many seconds each answer took.
ASK = """
import sys, time, urllib.request
for target in sys.argv[1:]:
    begun = time.monotonic()
    urllib.request.urlopen(f"http://{target}/metrics", timeout=20).read()
    print(target, time.monotonic() - begun)
"""


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

    @contextmanager
    def occupying(self, namespace: str, name: str, targets: list[str]) -> Iterator[str]:
        """Keeps connections open from a pod. Gives what the program printed."""
        command = [
            *("kubectl", "exec", "-i", "-n", namespace, name, "--"),
            *("/usr/bin/python3", "-c", OCCUPY, str(STRANGERS), *targets),
        ]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as running:
            assert running.stdin is not None and running.stdout is not None
            said = "".join(iter(running.stdout.readline, "open\n"))
            yield said
            running.stdin.close()


def slow_calls(cluster: Cluster) -> float:
    """How many of Crossplane's calls of the function took more than a second."""
    pods = cluster.all("pods", SYSTEM, "app=crossplane,release=crossplane")
    (pod,) = [pod["metadata"]["name"] for pod in pods]
    path = f"/api/v1/namespaces/{SYSTEM}/pods/{pod}:8080/proxy/metrics"
    lines = cluster.kubectl("get", "--raw", path).splitlines()
    name = "function_run_function_seconds"
    of_ours = [line for line in lines if "acme-function-gpu-workspace" in line]
    values = lambda start, word: [
        float(line.rsplit(" ", 1)[1])
        for line in of_ours
        if line.startswith(start) and word in line
    ]
    counted, quick = values(f"{name}_count", ""), values(f"{name}_bucket", 'le="1"')
    assert counted and quick, f"Crossplane has no metric {name} of the function"
    return sum(counted) - sum(quick)


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


# Other tests keep the machine so busy that calls take longer than a second without strangers, too.
@pytest.mark.alone
def test_two_thousand_silent_connections_delay_neither_crossplane_nor_prometheus(
    cluster: Cluster, alice: Workspaces, visitors: tuple[Visitors, str]
) -> None:
    pods, _ = visitors
    metrics = addresses(cluster, FUNCTION, 8080) + addresses(cluster, PROVIDER, 8080)
    grpc = addresses(cluster, FUNCTION, 9443)
    # The NetworkPolicy lets only Crossplane's pods reach gRPC. This pod has their label.
    pods.arrive(SYSTEM, "impostor", CROSSPLANE)
    try:
        with (
            pods.occupying(SYSTEM, "impostor", grpc) as of_impostor,
            pods.occupying(MONITORING, "prometheus", metrics) as of_prometheus,
        ):
            opened = dict(
                line.split() for line in (of_impostor + of_prometheus).splitlines()
            )
            assert opened == {target: str(STRANGERS) for target in grpc + metrics}
            slow = slow_calls(cluster)
            begun = time.monotonic()
            alice.claim("vision")
            alice.ready("vision", seconds=120)
            print(f"Ready after {time.monotonic() - begun:.1f} s")
            assert slow_calls(cluster) == slow
            said = cluster.kubectl(
                *("exec", "-i", "-n", MONITORING, "prometheus", "--"),
                *("/usr/bin/python3", "-", *metrics),
                stdin=ASK,
            )
            took = {target: float(s) for target, s in map(str.split, said.splitlines())}
            assert took.keys() == set(metrics) and max(took.values()) < 1, took
    finally:
        cluster.kubectl("delete", "pod", "impostor", "-n", SYSTEM, "--wait=false")
