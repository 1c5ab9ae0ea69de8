"""The provider ends instances whose pool no longer exists."""

from collections.abc import Iterator

import pytest

from environment.cluster import SYSTEM, Cluster
from environment.ec2 import Ec2
from environment.pools import Pools
from environment.runtime import arguments
from environment.waiting import until

pytestmark = pytest.mark.alone


@pytest.fixture
def impatient(cluster: Cluster) -> Iterator[None]:
    with arguments(cluster, "impatient", "--orphan-grace=5s"):
        yield


def test_what_a_pool_left_behind_is_ended_and_everything_else_stays(
    cluster: Cluster, namespace: str, ec2: Ec2, impatient: None
) -> None:
    pools = Pools(cluster, namespace)
    for name in ("stays", "goes"):
        pools.apply(name)
    (kept,) = pools.ready("stays")["status"]["atProvider"]["instances"]
    (lost,) = pools.ready("goes")["status"]["atProvider"]["instances"]

    # A person removes the finalizer. The provider does not add it to a paused pool.
    pools.annotate("goes", "crossplane.io/paused=true")
    pools.says("goes", "Synced", "False", "ReconcilePaused")
    patch = '{"metadata": {"finalizers": null}}'
    cluster.kubectl(
        *("patch", "spotpool", "goes", "-n", namespace, "--type=merge", "-p", patch)
    )
    pools.delete("goes")
    until(
        "its instance to end",
        lambda: [one["InstanceId"] for one in ec2.live(namespace)] == [kept["id"]],
    )
    until("its group to go", lambda: len(ec2.groups(namespace)) == 1)
    told = cluster.kubectl("get", "events", "-n", SYSTEM)
    assert f"terminated {lost['id']}" in told
    pools.delete("stays")
