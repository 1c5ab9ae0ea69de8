"""Two replicas of the provider: a leader and a standby."""

from collections.abc import Iterator

import pytest

from environment.cluster import SYSTEM, Cluster
from environment.objects import Object
from environment.ec2 import Ec2
from environment.pools import PODS, Pools, answers
from environment.runtime import arguments
from environment.waiting import until

pytestmark = pytest.mark.alone

LEASE = "crossplane-leader-election-provider-gpu-spot"


@pytest.mark.thorough
def test_a_standby_takes_over_when_the_leader_leaves(
    cluster: Cluster, namespace: str, ec2: Ec2, two_replicas: None
) -> None:
    pods = cluster.pods(PODS)
    assert len(pods) == 2
    until(
        "both to be ready, the standby too",
        lambda: all(answers(cluster, "/readyz", pod) for pod in pods),
    )
    pools = Pools(cluster, namespace)
    pools.apply("first")
    # Crossplane replaced the previous provider pod. Its lease lasts up to 15 s more.
    pools.ready("first", seconds=90)
    before = _holder(cluster)
    (leader,) = [pod for pod in pods if before.startswith(pod["metadata"]["name"])]
    cluster.kubectl("delete", "pod", "-n", SYSTEM, leader["metadata"]["name"])
    # The leader releases its lease when it ends, so the standby takes over at once.
    until("another leader", lambda: _holder(cluster) not in ("", before), seconds=15)
    pools.apply("second")
    pools.ready("second")
    assert len(ec2.live(namespace)) == 2
    pools.delete("first")
    pools.delete("second")


@pytest.fixture
def two_replicas(cluster: Cluster) -> Iterator[None]:
    with arguments(cluster, "two-replicas", replicas=2):
        yield


def _holder(cluster: Cluster) -> str:
    lease: Object | None = cluster.get("lease", LEASE, SYSTEM)
    return str((lease or {}).get("spec", {}).get("holderIdentity", ""))
