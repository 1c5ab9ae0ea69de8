"""Volumes that outlive instances."""

import pytest
from conftest import refused


@pytest.fixture
def home(ec2):
    return ec2.create_volume(
        AvailabilityZone="us-east-1a", Size=100, VolumeType="gp3", Encrypted=True
    )["VolumeId"]


def attach(ec2, volume, instance, device="/dev/sdf"):
    return ec2.attach_volume(
        VolumeId=volume, InstanceId=instance["InstanceId"], Device=device
    )


def test_a_home_moves_from_a_terminated_instance_to_the_next(
    emulator, ec2, launch, home
):
    (first,) = launch()
    attach(ec2, home, first)
    (volume,) = ec2.describe_volumes(VolumeIds=[home])["Volumes"]
    assert volume["State"] == "in-use"
    ec2.terminate_instances(InstanceIds=[first["InstanceId"]])
    emulator.advance(1)
    (volume,) = ec2.describe_volumes(VolumeIds=[home])["Volumes"]
    assert (volume["State"], volume["Attachments"]) == ("available", [])
    (second,) = launch()
    attach(ec2, home, second)


def test_a_volume_is_attached_to_one_instance_at_a_time(ec2, launch, home):
    first, second = launch(MinCount=2, MaxCount=2)
    attach(ec2, home, first)
    code = refused(
        ec2.attach_volume,
        VolumeId=home,
        InstanceId=second["InstanceId"],
        Device="/dev/sdf",
    )[1]
    assert code == "VolumeInUse"


def test_a_volume_of_another_zone_cannot_be_attached(ec2, launch, home):
    (instance,) = launch(Placement={"AvailabilityZone": "us-east-1b"})
    status, code, message = refused(
        ec2.attach_volume,
        VolumeId=home,
        InstanceId=instance["InstanceId"],
        Device="/dev/sdf",
    )
    assert (status, code) == (400, "InvalidVolume.ZoneMismatch")
    assert message == (
        f"The volume '{home}' is not in the same availability zone as instance "
        f"'{instance['InstanceId']}'"
    )


def test_a_device_name_is_taken_once(ec2, launch, home):
    (instance,) = launch()
    code = refused(
        ec2.attach_volume,
        VolumeId=home,
        InstanceId=instance["InstanceId"],
        Device="/dev/sda1",
    )[1]
    assert code == "InvalidParameterValue"


def test_a_volume_in_use_cannot_be_deleted(ec2, launch, home):
    (instance,) = launch()
    attach(ec2, home, instance)
    assert refused(ec2.delete_volume, VolumeId=home)[1] == "VolumeInUse"
    ec2.detach_volume(VolumeId=home, InstanceId=instance["InstanceId"])
    ec2.delete_volume(VolumeId=home)
    assert refused(ec2.describe_volumes, VolumeIds=[home])[1] == (
        "InvalidVolume.NotFound"
    )
