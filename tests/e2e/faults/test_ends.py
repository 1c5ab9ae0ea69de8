"""What has to end ends, although EC2 refuses something, and although two providers
work at the same time."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from environment.cluster import Cluster, condition
from environment.ec2 import Ec2, tags
from environment.emulator import Emulator
from environment.leases import Leases
from environment.pools import Pools
from environment.runtime import arguments
from environment.waiting import until

# The most seconds after `endsAt` in which a termination begins.
LATE = 5
LEASES = 50
AT_ONCE = 10
OF_LEASE = "gpu.platform.acme.io:lease-name"


@pytest.mark.parametrize("operation", ["DescribeImages", "DescribeSubnets"])
def test_a_pool_ends_on_time_although_ec2_answers_nothing_about_its_spec(
    pools: Pools, ec2: Ec2, emulator: Emulator, operation: str
) -> None:
    pools.apply("alice")
    pools.ready("alice")
    emulator.fault(operation, code="UnauthorizedOperation", status=403)
    end = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=20)
    pools.patch(
        "alice", {"forProvider": {"endsAt": end.strftime("%Y-%m-%dT%H:%M:%SZ")}}
    )
    until("the instance to end", lambda: not ec2.live(pools.namespace))
    ended = ec2.ended(pools.namespace)["alice"]
    assert timedelta(0) <= ended - end <= timedelta(seconds=LATE)
    emulator.clear_faults()
    pools.delete("alice")


def test_a_protected_instance_keeps_only_itself_running(pools: Pools, ec2: Ec2) -> None:
    pools.apply("alice", parameters={"size": {"minimum": 3, "maximum": 3}})
    pools.ready("alice")
    protected = ec2.live(pools.namespace)[0]["InstanceId"]
    _protect(ec2, protected, True)
    pools.delete("alice", wait=False)
    until(
        "the others to end",
        lambda: [one["InstanceId"] for one in ec2.live(pools.namespace)] == [protected],
    )
    seen = pools.says("alice", "Synced", "False", "termination protection")
    assert protected in condition(seen, "Synced")["message"]
    _protect(ec2, protected, False)
    until("the pool to go", lambda: pools.get("alice") is None, 120)
    assert ec2.live(pools.namespace) == []


def test_two_providers_hand_fifty_instances_out_and_end_them_once(
    pools: Pools, ec2: Ec2, cluster: Cluster, emulator: Emulator
) -> None:
    leases = Leases(cluster, pools.namespace)
    emulator.forget_calls()
    with arguments(cluster, "two-work", "--leader-election=false", replicas=2):
        size = {"minimum": 0, "maximum": AT_ONCE + 2, "idle": 2}
        pools.apply("shared", parameters={"size": size, "leases": {}})
        had: Counter[str] = Counter()
        for begin in range(0, LEASES, AT_ONCE):
            names = [f"lease-{number}" for number in range(begin, begin + AT_ONCE)]
            for name in names:
                leases.ask(name)
            given = {name: leases.ready(name) for name in names}
            had.update(given.values())
            _assert_tagged(ec2, given, pools.namespace)
            for name in names:
                leases.end(name)
            live = {one["InstanceId"] for one in ec2.live(pools.namespace)}
            assert not live & set(given.values()), "an instance outlives its lease"
        pools.delete("shared")
    assert set(had.values()) == {1}, "an instance was handed out twice"
    assert len(had) == LEASES
    assert ec2.live(pools.namespace) == [], "something leaked"
    ended = [
        id_
        for call in emulator.recorded("TerminateInstances")
        for id_ in call["parameters"]["InstanceIds"]
    ]
    assert set(had) <= set(ended)


def _protect(ec2: Ec2, instance_id: str, is_protected: bool) -> None:
    ec2.client.modify_instance_attribute(
        InstanceId=instance_id, DisableApiTermination={"Value": is_protected}
    )


def _assert_tagged(ec2: Ec2, given: dict[str, str], namespace: str) -> None:
    """EC2 shows each lease on its instance, and on no other one."""
    live = {one["InstanceId"]: tags(one).get(OF_LEASE) for one in ec2.live(namespace)}
    for name, id_ in given.items():
        holders = [held for held, of in live.items() if of == f"{namespace}/{name}"]
        assert holders == [id_], f"{name} has {holders}"
