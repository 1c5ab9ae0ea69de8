"""What AWS refuses late, in other words, or about one offering only."""

import json

from environment.cluster import Cluster, condition
from environment.ec2 import Ec2
from environment.emulator import Emulator
from environment.objects import Object
from environment.pools import Pools
from environment.waiting import until

ZONES = ("us-east-1a", "us-east-1b")
# All pools of a region leave an offering alone that EC2 refused, for up to half an hour. Tests
# whose launches EC2 refuses have types of their own, so that the next test gets its instance.
OF_THE_FALLBACK, OF_THE_TEXT = "g6.xlarge", "g6e.xlarge"


def test_on_demand_stands_in_where_one_zone_has_no_spot_and_no_other_has_capacity(
    pools: Pools, ec2: Ec2, emulator: Emulator
) -> None:
    unsold, full = ZONES
    spot = {"MarketType": "spot"}
    emulator.fault(
        "CreateFleet",
        code="InvalidFleetConfiguration",
        place="inside",
        match={**spot, "AvailabilityZone": unsold},
    )
    emulator.fault(
        "CreateFleet",
        code="InsufficientInstanceCapacity",
        match={**spot, "AvailabilityZone": full},
    )
    pools.apply(
        "alice",
        type_=OF_THE_FALLBACK,
        parameters={
            "capacityType": "SpotWithFallback",
            "fallback": {"after": "10s"},
            "zones": list(ZONES),
        },
    )
    pools.ready("alice", seconds=120)
    (instance,) = ec2.live(pools.namespace)
    assert "InstanceLifecycle" not in instance, "it is a spot instance"
    emulator.clear_faults()
    pools.delete("alice")


def test_a_launch_that_dies_at_birth_says_why_and_is_repeated_ever_more_slowly(
    pools: Pools, ec2: Ec2, emulator: Emulator
) -> None:
    emulator.forget_calls()
    emulator.fault("CreateFleet", effect="end", code="Client.InternalError")
    pools.apply("alice")
    seen = pools.says("alice", "Launched", "False", "Client.InternalError")
    assert "docs/install.md" in condition(seen, "Launched")["message"]
    assert emulator.calls()["CreateFleet"] <= 2
    emulator.clear_faults()
    # The next attempt is minutes away; a changed spec is tried at once.
    pools.patch("alice", {"forProvider": {"userData": "#cloud-config\n# another\n"}})
    pools.ready("alice", seconds=120)
    assert len(ec2.live(pools.namespace)) == 1
    pools.delete("alice")


def test_a_denial_inside_an_answer_is_told_and_buys_nothing(
    pools: Pools, ec2: Ec2, emulator: Emulator
) -> None:
    emulator.fault("CreateFleet", code="UnauthorizedOperation", place="inside")
    pools.apply("alice")
    seen = pools.says("alice", "Launched", "False", "UnauthorizedOperation")
    assert condition(seen, "Launched")["reason"] == "Denied"
    assert ec2.live(pools.namespace) == []
    emulator.clear_faults()
    pools.delete("alice")


def test_a_capacity_text_that_changes_makes_no_new_event(
    pools: Pools, cluster: Cluster, emulator: Emulator
) -> None:
    emulator.fault("CreateFleet", code="InsufficientInstanceCapacity")
    pools.apply("alice", type_=OF_THE_TEXT)
    pools.says("alice", "Launched", "False", "InsufficientInstanceCapacity")
    for token in ("first", "second", "third"):
        seen = pools.look_again("alice", token)
        message = condition(seen, "Launched")["message"]
        assert "You can currently get" not in message
    listed = cluster.kubectl("get", "events", "-n", pools.namespace, "-o", "json")
    reasons = [event["reason"] for event in json.loads(listed)["items"]]
    assert reasons.count("LaunchRefused") == 1
    emulator.clear_faults()
    pools.delete("alice")


def test_a_token_whose_instance_has_ended_blocks_nothing(
    pools: Pools, ec2: Ec2, emulator: Emulator
) -> None:
    emulator.settings(refuseEndedTokens=True)
    emulator.fault("CreateFleet", effect="lose-reply", times=1)
    emulator.fault("CreateFleet", effect="end", code="Server.InternalError", times=1)
    pools.apply("alice")
    pools.ready("alice", seconds=180)
    assert len(ec2.live(pools.namespace)) == 1
    emulator.settings(refuseEndedTokens=False)
    emulator.clear_faults()
    pools.delete("alice")


def test_an_end_that_stop_protection_forbids_is_told(pools: Pools, ec2: Ec2) -> None:
    pools.apply("alice")
    pools.ready("alice")
    (instance,) = ec2.live(pools.namespace)
    _protect_from_stops(ec2, instance["InstanceId"], True)
    pools.delete("alice", wait=False)
    pools.says("alice", "Synced", "False", "may not be terminated")
    _protect_from_stops(ec2, instance["InstanceId"], False)
    until("the pool to go", lambda: pools.get("alice") is None, 120)
    assert ec2.live(pools.namespace) == []


def test_a_zone_that_is_down_blinds_no_other_zone(
    pools: Pools, ec2: Ec2, emulator: Emulator
) -> None:
    """For minutes the last look would serve, and show the lost instance as running."""
    healthy, down = ZONES
    placed = {"lost": healthy, "ends": healthy, "there": down}
    for name, zone in placed.items():
        pools.apply(name, parameters={"zones": [zone]})
    ids = {name: _instance_id(pools.ready(name)) for name in placed}
    emulator.settings(zoneDown=down)
    emulator.terminate(ids["lost"])
    pools.patch("ends", {"forProvider": {"size": {"minimum": 0, "maximum": 0}}})

    def is_replaced() -> bool:
        shown = _instances(pools.get("lost"))
        running = {one["id"] for one in shown if one["state"] == "running"}
        return bool(running - {ids["lost"]})

    until("another instance in the healthy zone", is_replaced, seconds=90)
    until(
        "the end of the instance that is not wanted",
        lambda: not _instances(pools.get("ends")),
    )
    assert _instance_id(pools.get("there")) == ids["there"]
    emulator.settings(zoneDown="")
    assert len(ec2.live(pools.namespace)) == 2
    pools.ready("there")
    for name in placed:
        pools.delete(name)


def _protect_from_stops(ec2: Ec2, instance_id: str, is_protected: bool) -> None:
    ec2.client.modify_instance_attribute(
        InstanceId=instance_id, DisableApiStop={"Value": is_protected}
    )


def _instance_id(pool: Object | None) -> str:
    (instance,) = _instances(pool)
    id_: str = instance["id"]
    return id_


def _instances(pool: Object | None) -> list[Object]:
    assert pool is not None
    shown: list[Object] = pool["status"]["atProvider"].get("instances", [])
    return shown
