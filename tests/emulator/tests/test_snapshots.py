"""Snapshots and larger volumes, as AWS documents them."""

import pytest
from conftest import refused

ZONE = "us-east-1a"
TAGS = [{"ResourceType": "snapshot", "Tags": [{"Key": "team", "Value": "vision"}]}]


@pytest.fixture
def volume(emulator, ec2):
    made = ec2.create_volume(
        AvailabilityZone=ZONE, Size=10, VolumeType="gp3", Encrypted=True
    )
    emulator.advance(1)
    return made["VolumeId"]


@pytest.fixture
def snapshot(emulator, ec2, volume):
    made = ec2.create_snapshot(
        VolumeId=volume, Description="before", TagSpecifications=TAGS
    )
    return made["SnapshotId"]


def code(call, **request):
    return refused(call, **request)[1]


def seen(ec2, **request):
    return ec2.describe_snapshots(OwnerIds=["self"], **request)["Snapshots"]


def test_a_snapshot_is_pending_until_all_of_the_volume_is_in_it(
    emulator, ec2, volume, snapshot
):
    (pending,) = seen(ec2, SnapshotIds=[snapshot])
    assert (pending["State"], pending["VolumeId"]) == ("pending", volume)
    assert (pending["VolumeSize"], pending["Encrypted"]) == (10, True)
    assert pending["Tags"] == TAGS[0]["Tags"]
    emulator.advance(5)
    (completed,) = seen(ec2, SnapshotIds=[snapshot])
    assert (completed["State"], completed["Progress"]) == ("completed", "100%")


def test_a_snapshot_is_found_by_its_tags_state_and_volume(
    emulator, ec2, volume, snapshot
):
    def found(name, value):
        return [
            one["SnapshotId"]
            for one in seen(ec2, Filters=[{"Name": name, "Values": [value]}])
        ]

    for name, value in [
        ("tag:team", "vision"),
        ("tag-key", "team"),
        ("status", "pending"),
        ("volume-id", volume),
    ]:
        assert found(name, value) == [snapshot], name
    assert found("tag:team", "other") == []
    assert found("status", "completed") == []


def test_a_volume_is_made_from_a_completed_snapshot_in_another_zone(
    emulator, ec2, snapshot
):
    request = {
        "AvailabilityZone": "us-east-1b",
        "SnapshotId": snapshot,
        "VolumeType": "gp3",
        "Encrypted": True,
    }
    assert code(ec2.create_volume, **request) == "IncorrectState"
    emulator.advance(5)
    assert code(ec2.create_volume, **request, Size=9) == "InvalidParameterValue"
    made = ec2.create_volume(**request, Size=12, ClientToken="one")
    assert (made["SnapshotId"], made["Size"]) == (snapshot, 12)
    assert made["AvailabilityZone"] == "us-east-1b"
    # EC2 still answers the token although the snapshot is deleted.
    ec2.delete_snapshot(SnapshotId=snapshot)
    again = ec2.create_volume(**request, Size=12, ClientToken="one")
    assert again["VolumeId"] == made["VolumeId"]


def test_a_snapshot_outlives_its_volume_and_keeps_its_size(
    emulator, ec2, volume, snapshot
):
    emulator.advance(5)
    ec2.modify_volume(VolumeId=volume, Size=20)
    ec2.delete_volume(VolumeId=volume)
    (kept,) = seen(ec2, SnapshotIds=[snapshot])
    assert (kept["State"], kept["VolumeSize"]) == ("completed", 10)
    made = ec2.create_volume(AvailabilityZone=ZONE, SnapshotId=snapshot)
    assert made["Size"] == 10


def test_what_does_not_exist_is_named(ec2, volume, snapshot):
    unknown = "snap-0123456789abcdef0"
    assert (
        code(ec2.create_snapshot, VolumeId="vol-0123456789abcdef0")
        == "InvalidVolume.NotFound"
    )
    assert code(ec2.delete_snapshot, SnapshotId=unknown) == "InvalidSnapshot.NotFound"
    assert (
        code(ec2.create_volume, AvailabilityZone=ZONE, SnapshotId=unknown)
        == "InvalidSnapshot.NotFound"
    )
    ec2.delete_snapshot(SnapshotId=snapshot)
    assert (
        code(ec2.describe_snapshots, SnapshotIds=[snapshot])
        == "InvalidSnapshot.NotFound"
    )


def test_a_volume_that_is_being_made_cannot_be_copied(ec2):
    made = ec2.create_volume(AvailabilityZone=ZONE, Size=10)
    assert code(ec2.create_snapshot, VolumeId=made["VolumeId"]) == "IncorrectState"


def test_a_volume_grows_four_times_within_a_day(emulator, ec2, volume):
    for size in (20, 30, 40, 50):
        ec2.modify_volume(VolumeId=volume, Size=size)
        emulator.advance(3600)
    assert (
        code(ec2.modify_volume, VolumeId=volume, Size=60)
        == "VolumeModificationRateExceeded"
    )
    emulator.advance(20 * 3600 + 1)
    ec2.modify_volume(VolumeId=volume, Size=60)
    assert code(ec2.modify_volume, VolumeId=volume, Size=20) == "InvalidParameterValue"
    (grown,) = ec2.describe_volumes(VolumeIds=[volume])["Volumes"]
    assert grown["Size"] == 60
