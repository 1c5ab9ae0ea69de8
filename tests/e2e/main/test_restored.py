"""A restored pool has another UID, and keeps its instance. A copy of a pool gets nothing."""

from environment.cluster import condition
from environment.ec2 import Ec2
from environment.pools import OWN_IDENTITY, Pools
from environment.waiting import until


def test_a_restored_pool_keeps_its_instance(pools: Pools, ec2: Ec2) -> None:
    pools.apply("alice")
    before = pools.ready("alice")
    (instance,) = ec2.live(pools.namespace)
    assert before["metadata"]["annotations"][OWN_IDENTITY].startswith(
        f"{before['metadata']['uid']}."
    )
    pools.abandon("alice")
    pools.restore(before)
    after = pools.ready("alice")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert [one["InstanceId"] for one in ec2.live(pools.namespace)] == [
        instance["InstanceId"]
    ]

    # A tool that knows nothing of the annotation removes it.
    pools.annotate("alice", f"{OWN_IDENTITY}-")
    until("the annotation to come back", lambda: _annotation(pools, "alice"))
    pools.delete("alice")
    assert ec2.live(pools.namespace) == [], "the restored pool owns the instance"


def test_a_copy_of_a_pool_takes_nothing_over_and_says_why(
    pools: Pools, ec2: Ec2
) -> None:
    pools.apply("alice")
    first = pools.ready("alice")
    (instance,) = ec2.live(pools.namespace)
    pools.restore(first, "mallory")
    refused = pools.says("mallory", "Synced", "False", "remove the annotation")
    assert OWN_IDENTITY in condition(refused, "Synced")["message"]
    assert [one["InstanceId"] for one in ec2.live(pools.namespace)] == [
        instance["InstanceId"]
    ]

    pools.annotate("mallory", f"{OWN_IDENTITY}-")
    pools.ready("mallory")
    assert len(ec2.live(pools.namespace)) == 2, "the copy has an instance of its own"
    pools.delete("mallory")
    assert [one["InstanceId"] for one in ec2.live(pools.namespace)] == [
        instance["InstanceId"]
    ]
    pools.delete("alice")


def _annotation(pools: Pools, name: str) -> str | None:
    metadata = (pools.get(name) or {}).get("metadata", {})
    found: str | None = metadata.get("annotations", {}).get(OWN_IDENTITY)
    return found
