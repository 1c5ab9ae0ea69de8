"""What EC2 accepts and takes back, hides, or refuses although it has already done it."""

from datetime import UTC, datetime, timedelta

import pytest

from environment.cluster import condition
from environment.ec2 import Ec2, networks
from environment.emulator import Emulator
from environment.pools import Pools
from environment.waiting import until

IMAGE = "ami-00000000000c0de01"
HOME = {"home": {"sizeGiB": 1, "onDelete": "Delete"}}
# More instances than EC2's buckets for launches and for ends hold: 1,000 each ("Request
# throttling for the Amazon EC2 API").
MANY = 520


def test_a_deprecated_image_takes_no_pool_out_of_sync_and_is_launched(
    pools: Pools, ec2: Ec2, emulator: Emulator
) -> None:
    pools.apply("alice")
    pools.ready("alice")
    (before,) = ec2.live(pools.namespace)
    soon = datetime.now(UTC) + timedelta(seconds=2)
    ec2.client.enable_image_deprecation(ImageId=IMAGE, DeprecateAt=soon)
    by_filter = [{"Name": "image-id", "Values": [IMAGE]}]
    until(
        "EC2 to hide the image",
        lambda: not ec2.client.describe_images(Filters=by_filter)["Images"],
    )
    seen = pools.look_again("alice", "deprecated")
    assert condition(seen, "Synced")["status"] == "True"
    emulator.terminate(before["InstanceId"])
    until(
        "another instance of the image",
        lambda: [one["ImageId"] for one in ec2.live(pools.namespace)] == [IMAGE],
    )
    pools.ready("alice")
    ec2.client.disable_image_deprecation(ImageId=IMAGE)
    pools.delete("alice")


def test_a_home_that_ec2_takes_back_says_why_and_is_made_once_ec2_makes_it(
    pools: Pools, ec2: Ec2, emulator: Emulator
) -> None:
    emulator.forget_calls()
    emulator.fault("CreateVolume", effect="end", code="Client.InternalError", times=1)
    pools.apply("alice", parameters=HOME)
    # A new volume may be missing from EC2's lists for a minute.
    seen = pools.says("alice", "Ready", "False", "VolumeTakenBack", seconds=150)
    assert "key for volumes" in condition(seen, "Ready")["message"]
    # The provider asks again five minutes later.
    pools.ready("alice", seconds=420)
    (home,) = ec2.homes(pools.namespace)
    assert emulator.calls()["CreateVolume"] <= 4
    pools.delete("alice")
    left = [one["VolumeId"] for one in ec2.homes(pools.namespace)]
    assert home["VolumeId"] not in left


@pytest.mark.parametrize(
    ("operation", "limit"),
    [
        ("CreateVolume", "VolumeLimitExceeded"),
        ("CreateFleet", "MaxSpotInstanceCountExceeded"),
    ],
)
def test_a_limit_that_ec2_looks_for_before_the_token_makes_nothing_twice(
    pools: Pools, ec2: Ec2, emulator: Emulator, operation: str, limit: str
) -> None:
    emulator.fault(operation, effect="lose-reply", times=1)
    emulator.fault(operation, code=limit, place="front")
    pools.apply("alice", parameters=HOME)
    pools.ready("alice", seconds=120)
    assert len(ec2.live(pools.namespace)) == 1
    assert len(ec2.homes(pools.namespace)) == 1
    emulator.clear_faults()
    pools.delete("alice")


def test_a_network_with_bits_of_a_host_is_opened_once_and_closed(
    pools: Pools, ec2: Ec2, emulator: Emulator
) -> None:
    emulator.forget_calls()
    pools.apply("alice", parameters={"ssh": {"allowedCidrs": ["203.0.113.7/24"]}})
    pools.ready("alice")
    for token in ("first", "second"):
        pools.look_again("alice", token)
    assert _networks(pools, ec2) == ["203.0.113.0/24"]
    assert emulator.calls()["AuthorizeSecurityGroupIngress"] == 1
    # EC2 revokes the rule, and its answer is lost.
    emulator.fault("RevokeSecurityGroupIngress", effect="lose-reply", times=1)
    pools.patch(
        "alice", {"forProvider": {"ssh": {"allowedCidrs": ["198.51.100.0/24"]}}}
    )
    until(
        "the other network alone",
        lambda: _networks(pools, ec2) == ["198.51.100.0/24"],
    )
    seen = pools.look_again("alice", "third")
    assert condition(seen, "Synced")["status"] == "True"
    pools.delete("alice")


def test_more_instances_than_ec2s_buckets_hold_are_launched_and_ended(
    pools: Pools, ec2: Ec2, emulator: Emulator
) -> None:
    emulator.settings(throttle=True)
    names = ("first", "second")
    many = {"size": {"minimum": MANY, "maximum": MANY}}
    for name in names:
        pools.apply(name, parameters=many)
    for name in names:
        pools.ready(name, seconds=300)
    assert len(ec2.live(pools.namespace)) == len(names) * MANY
    for name in names:
        pools.delete(name, wait=False)
    until(
        "all instances to end",
        lambda: ec2.live(pools.namespace) == [],
        seconds=180,
        period=2,
    )
    until(
        "the pools to go",
        lambda: all(pools.get(name) is None for name in names),
        120,
    )
    emulator.settings(throttle=False)


def _networks(pools: Pools, ec2: Ec2) -> list[str]:
    (group,) = ec2.groups(pools.namespace)
    return networks(group)
