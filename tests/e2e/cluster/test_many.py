"""A claim with every field, and many at once."""

import json
import os
import time

import pytest

from cluster.conftest import NewUser
from cluster.workspaces import HOME, HOST_NETWORK, Workspaces
from environment.cluster import CLAIMS, Cluster, condition, is_ready
from environment.objects import Object
from environment.platform import claim
from environment.waiting import until

# `CLAIMS=100` takes three times as long. A hundred pods fit into a machine of 24 GiB.
MANY = int(os.environ.get("CLAIMS", "30"))
# Crossplane's default limit of a burst of events of one composite.
DEFAULT_BURST = 100


def heard(cluster: Cluster, metric: str) -> float:
    """The sum of a metric over Crossplane's circuit breakers of workspaces."""
    pods = cluster.all("pods", "crossplane-system", "app=crossplane")
    (pod,) = [pod["metadata"]["name"] for pod in pods]
    path = f"/api/v1/namespaces/crossplane-system/pods/{pod}:8080/proxy/metrics"
    metrics = cluster.kubectl("get", "--raw", path).splitlines()
    return sum(
        float(line.rsplit(" ", 1)[1])
        for line in metrics
        if line.startswith(metric + "{") and "gpudevworkspaces" in line
    )


# The test shares the queue with the tests of test_queue.py.
@pytest.mark.xdist_group("queue")
def test_every_field_of_a_claim_has_its_effect(team: Workspaces, queued: str) -> None:
    team.claim(
        "full",
        composition=queued,
        flavor="cpu-small",
        opencvVersion="4.8.0",
        pytorchVersion="1.13.0",
        home=HOME,
        ssh={"publicKeys": [team.key.public], "allowedCidrs": [HOST_NETWORK]},
        overrides={"cpu": "300m", "memory": "2Gi", "shmSize": "128Mi"},
        distributed={"nodes": 2, "gpusPerNode": 0},
        queue={"name": "gpus", "priorityClass": "interactive"},
        lifecycle={"state": "Running"},
    )
    status = team.ready("full", seconds=180)
    assert len(status["nodes"]) == 2
    pod, _ = team.pods("full")
    (container,) = pod["spec"]["containers"]
    assert container["resources"]["requests"] == {
        "cpu": "300m",
        "memory": "2Gi",
        "ephemeral-storage": "1Gi",
    }
    shm = team.run("full", "df", "-k", "--output=size", "/dev/shm").split()[1]
    assert shm == str(128 * 1024)
    assert len(team.homes("full")) == 2


@pytest.mark.alone
def test_many_claims_at_once_are_all_ready(cluster: Cluster, new_user: NewUser) -> None:
    users = [new_user() for _ in range(5)]
    opened = heard(cluster, "circuit_breaker_opens_total")
    events = heard(cluster, "circuit_breaker_events_total")
    names = [(users[n % len(users)], f"many-{n}") for n in range(MANY)]
    claims = [
        claim(
            user.namespace,
            name,
            {
                "owner": user.owner,
                "placement": "Cluster",
                "overrides": {"cpu": "10m", "memory": "216Mi"},
            },
        )
        for user, name in names
    ]
    began = time.monotonic()
    cluster.kubectl(
        "apply",
        "-f",
        "-",
        stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": claims}),
    )

    def of_users() -> list[Object]:
        listed = cluster.kubectl("get", CLAIMS, "-A", "-o", "json")
        ours = {user.namespace for user in users}
        return [
            c for c in json.loads(listed)["items"] if c["metadata"]["namespace"] in ours
        ]

    ready_at: dict[str, float] = {}

    def all_ready() -> bool:
        for one in of_users():
            key = f"{one['metadata']['namespace']}/{one['metadata']['name']}"
            if is_ready(one):
                ready_at.setdefault(key, time.monotonic() - began)
        return len(ready_at) == MANY

    until(f"{MANY} claims to be Ready", all_ready, seconds=900)
    times = sorted(ready_at.values())
    print(
        f"\n{MANY} claims Ready: first {times[0]:.1f} s, "
        f"half {times[MANY // 2]:.1f} s, all {times[-1]:.1f} s"
    )
    each = (heard(cluster, "circuit_breaker_events_total") - events) / MANY
    print(f"{each:.0f} events for each")
    assert heard(cluster, "circuit_breaker_opens_total") == opened
    assert each < DEFAULT_BURST
    composites = json.loads(
        cluster.kubectl("get", "gpudevworkspaces.platform.acme.io", "-o", "json")
    )["items"]
    closed = [condition(xr, "Responsive").get("reason") for xr in composites]
    assert set(closed) == {"WatchCircuitClosed"}
