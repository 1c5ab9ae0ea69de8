"""The provider ends instances whose pool no longer exists."""

from collections.abc import Iterator

import pytest

from environment.cluster import SYSTEM, Cluster
from environment.ec2 import Ec2
from environment.pools import OWN_IDENTITY, Pools
from environment.runtime import arguments
from environment.waiting import until

pytestmark = pytest.mark.alone


@pytest.fixture
def impatient(cluster: Cluster) -> Iterator[None]:
    with arguments(cluster, "impatient", "--orphan-grace=5s"):
        yield


def witness_swept(pools: Pools, name: str, ec2: Ec2, *, stays: set[str]) -> None:
    """Loses a pool, and waits until the provider has ended its instance and nothing else."""
    pools.apply(name)
    pools.ready(name)
    pools.abandon(name)
    until(
        "the witness to be swept, and nothing else",
        lambda: {one["InstanceId"] for one in ec2.live(pools.namespace)} == stays,
    )


def test_what_a_pool_left_behind_is_ended_and_everything_else_stays(
    cluster: Cluster, namespace: str, ec2: Ec2, impatient: None
) -> None:
    pools = Pools(cluster, namespace)
    for name in ("stays", "goes"):
        pools.apply(name)
    (kept,) = pools.ready("stays")["status"]["atProvider"]["instances"]
    (lost,) = pools.ready("goes")["status"]["atProvider"]["instances"]

    pools.abandon("goes")
    until(
        "its instance to end",
        lambda: [one["InstanceId"] for one in ec2.live(namespace)] == [kept["id"]],
    )
    until("its group to go", lambda: len(ec2.groups(namespace)) == 1)
    told = cluster.kubectl("get", "events", "-n", SYSTEM)
    assert f"terminated {lost['id']}" in told
    pools.delete("stays")


@pytest.mark.thorough
def test_a_paused_restored_pool_without_its_annotation_keeps_its_instance(
    cluster: Cluster, namespace: str, ec2: Ec2
) -> None:
    pools = Pools(cluster, namespace)
    # The sweeper looks only where some pool is, and no provider looks for a paused one.
    pools.apply("stays")
    (other,) = pools.ready("stays")["status"]["atProvider"]["instances"]
    pools.apply("restored")
    before = pools.ready("restored")
    (kept,) = before["status"]["atProvider"]["instances"]
    pools.abandon("restored")
    pools.restore(before)
    pools.ready("restored")
    pools.annotate("restored", "crossplane.io/paused=true")
    pools.says("restored", "Synced", "False", "ReconcilePaused")
    pools.annotate("restored", f"{OWN_IDENTITY}-")
    with arguments(cluster, "impatient", "--orphan-grace=5s"):
        # The second witness is swept later than everything that was lost before it.
        for name in ("witness-1", "witness-2"):
            witness_swept(pools, name, ec2, stays={other["id"], kept["id"]})
    pools.annotate("restored", "crossplane.io/paused-")
    for name in ("restored", "stays"):
        pools.delete(name)


@pytest.mark.thorough
def test_what_a_deleted_pool_leaves_on_purpose_is_not_swept(
    cluster: Cluster, namespace: str, ec2: Ec2, impatient: None
) -> None:
    pools = Pools(cluster, namespace)
    for name, policies in (("stays", ["*"]), ("orphaning", ["Observe", "Create"])):
        pools.apply(name, managementPolicies=policies)
    # The sweeper looks only where some pool is.
    (other,) = pools.ready("stays")["status"]["atProvider"]["instances"]
    (kept,) = pools.ready("orphaning")["status"]["atProvider"]["instances"]
    pools.delete("orphaning")
    # The sweeper ends what was lost later, so it has seen what was left before.
    for name in ("witness-1", "witness-2"):
        witness_swept(pools, name, ec2, stays={other["id"], kept["id"]})
    pools.delete("stays")
    ec2.client.terminate_instances(InstanceIds=[kept["id"]])
