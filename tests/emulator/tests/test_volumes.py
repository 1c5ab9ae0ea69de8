"""Volumes that outlive instances: "Amazon EBS volume lifecycle" (EBS user guide)."""

import pytest
from conftest import refused, shown


@pytest.fixture
def home(emulator, ec2):
    volume = ec2.create_volume(
        AvailabilityZone="us-east-1a", Size=100, VolumeType="gp3", Encrypted=True
    )
    emulator.advance(1)
    return volume["VolumeId"]


@pytest.fixture
def running(emulator, launch):
    """Launches instances, and advances the clock until they run."""

    def run(**changes):
        instances = launch(**changes)
        emulator.advance(2)
        return instances

    return run


def attach(ec2, volume, instance, device="/dev/sdf"):
    return ec2.attach_volume(
        VolumeId=volume, InstanceId=instance["InstanceId"], Device=device
    )


def volume_of(ec2, volume):
    (found,) = ec2.describe_volumes(VolumeIds=[volume])["Volumes"]
    return found


def test_a_volume_is_made_as_it_was_asked_for_and_available_after_a_while(
    emulator, ec2
):
    made = ec2.create_volume(
        AvailabilityZone="us-east-1b",
        Size=20,
        VolumeType="gp3",
        Encrypted=True,
        TagSpecifications=[
            {"ResourceType": "volume", "Tags": [{"Key": "Name", "Value": "home"}]}
        ],
    )
    assert made["State"] == "creating"
    emulator.advance(0.5)
    volume = volume_of(ec2, made["VolumeId"])
    assert volume["State"] == "available"
    assert (volume["AvailabilityZone"], volume["Size"]) == ("us-east-1b", 20)
    # "General Purpose SSD volumes": 3,000 IOPS and 125 MiB/s are included.
    assert (volume["VolumeType"], volume["Iops"], volume["Throughput"]) == (
        "gp3",
        3000,
        125,
    )
    assert volume["Encrypted"] and volume["KmsKeyId"].startswith("arn:aws:kms:")
    assert volume["Tags"] == [{"Key": "Name", "Value": "home"}]


def test_a_volume_that_ec2_takes_back_is_never_available(emulator, ec2):
    emulator.fault("CreateVolume", effect="end", code="Client.InternalError", times=1)
    request = {"AvailabilityZone": "us-east-1a", "Size": 20, "ClientToken": "home"}
    taken = ec2.create_volume(**request)
    assert taken["State"] == "creating"
    assert volume_of(ec2, taken["VolumeId"])["State"] == "creating"
    emulator.advance(0.6)
    described = refused(ec2.describe_volumes, VolumeIds=[taken["VolumeId"]])
    assert described[1] == "InvalidVolume.NotFound"
    # Its token is used up.
    assert refused(ec2.create_volume, **request)[1] == "IdempotentParameterMismatch"
    other = ec2.create_volume(**{**request, "ClientToken": "another"})["VolumeId"]
    emulator.advance(0.6)
    assert volume_of(ec2, other)["State"] == "available"


def test_a_volume_needs_a_zone_that_exists_and_a_size(ec2):
    status, code, message = refused(
        ec2.create_volume, AvailabilityZone="us-east-1z", Size=20
    )
    assert (status, code) == (400, "InvalidZone.NotFound")
    assert message == "The zone 'us-east-1z' does not exist."
    code = refused(ec2.create_volume, AvailabilityZone="us-east-1a")[1]
    assert code == "MissingParameter"


def test_a_volume_being_created_cannot_be_attached(emulator, ec2, running):
    (instance,) = running(Placement={"AvailabilityZone": "us-east-1a"})
    volume = ec2.create_volume(AvailabilityZone="us-east-1a", Size=20)["VolumeId"]
    with pytest.raises(ec2.exceptions.ClientError, match="IncorrectState"):
        attach(ec2, volume, instance)
    emulator.advance(0.5)
    attach(ec2, volume, instance)


def test_an_attachment_is_attaching_and_then_attached(emulator, ec2, running, home):
    (instance,) = running()
    assert attach(ec2, home, instance)["State"] == "attaching"
    volume = volume_of(ec2, home)
    assert volume["State"] == "in-use"
    assert volume["Attachments"][0]["State"] == "attaching"
    emulator.advance(0.5)
    (attachment,) = volume_of(ec2, home)["Attachments"]
    assert attachment["State"] == "attached"
    assert attachment["Device"] == "/dev/sdf"
    assert attachment["InstanceId"] == instance["InstanceId"]
    assert attachment["DeleteOnTermination"] is False
    (seen,) = shown(ec2, InstanceIds=[instance["InstanceId"]])
    devices = {one["DeviceName"]: one["Ebs"] for one in seen["BlockDeviceMappings"]}
    assert devices["/dev/sdf"]["Status"] == "attached"
    assert devices["/dev/sda1"]["DeleteOnTermination"] is True


def test_a_detached_volume_is_in_use_until_its_attachment_is_gone(
    emulator, ec2, running, home
):
    (instance,) = running()
    attach(ec2, home, instance)
    emulator.advance(1)
    detach = {"VolumeId": home, "InstanceId": instance["InstanceId"]}
    assert ec2.detach_volume(**detach)["State"] == "detaching"
    volume = volume_of(ec2, home)
    assert volume["State"] == "in-use"
    assert volume["Attachments"][0]["State"] == "detaching"
    assert refused(ec2.delete_volume, VolumeId=home)[1] == "VolumeInUse"
    emulator.advance(0.5)
    volume = volume_of(ec2, home)
    assert (volume["State"], volume["Attachments"]) == ("available", [])
    (seen,) = shown(ec2, InstanceIds=[instance["InstanceId"]])
    assert [one["DeviceName"] for one in seen["BlockDeviceMappings"]] == ["/dev/sda1"]


def test_detaching_what_is_not_attached_says_so(emulator, ec2, running, home):
    first, second = running(MinCount=2, MaxCount=2)
    status, code, message = refused(ec2.detach_volume, VolumeId=home)
    assert (status, code) == (400, "IncorrectState")
    assert message == f"Volume '{home}' is in the 'available' state."
    attach(ec2, home, first)
    emulator.advance(1)
    for wrong in ({"InstanceId": second["InstanceId"]}, {"Device": "/dev/sdg"}):
        code = refused(ec2.detach_volume, VolumeId=home, **wrong)[1]
        assert code == "InvalidAttachment.NotFound", wrong


def test_the_root_volume_of_a_running_instance_stays(ec2, running):
    (instance,) = running()
    (seen,) = shown(ec2, InstanceIds=[instance["InstanceId"]])
    (root,) = seen["BlockDeviceMappings"]
    code = refused(ec2.detach_volume, VolumeId=root["Ebs"]["VolumeId"])[1]
    assert code == "OperationNotPermitted"


def test_a_home_moves_from_a_terminated_instance_to_the_next(
    emulator, ec2, running, home
):
    (first,) = running()
    attach(ec2, home, first)
    assert volume_of(ec2, home)["State"] == "in-use"
    ec2.terminate_instances(InstanceIds=[first["InstanceId"]])
    assert volume_of(ec2, home)["State"] == "in-use"
    emulator.advance(1)
    volume = volume_of(ec2, home)
    assert (volume["State"], volume["Attachments"]) == ("available", [])
    # "Preserve data when an instance is terminated": EC2 deletes root volumes and keeps
    # other volumes.
    assert [one["VolumeId"] for one in ec2.describe_volumes()["Volumes"]] == [home]
    (second,) = running()
    attach(ec2, home, second)


def test_a_stopped_instance_keeps_its_volumes_and_takes_others(
    emulator, ec2, running, home
):
    (instance,) = running()
    ec2.stop_instances(InstanceIds=[instance["InstanceId"]])
    emulator.advance(1)
    attach(ec2, home, instance)
    ec2.start_instances(InstanceIds=[instance["InstanceId"]])
    emulator.advance(2)
    assert volume_of(ec2, home)["Attachments"][0]["State"] == "attached"


@pytest.mark.parametrize("ended", [False, True])
def test_only_a_running_or_stopped_instance_takes_a_volume(
    emulator, ec2, launch, home, ended
):
    (instance,) = launch()
    if ended:
        ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
        emulator.advance(1)
    status, code, message = refused(
        ec2.attach_volume,
        VolumeId=home,
        InstanceId=instance["InstanceId"],
        Device="/dev/sdf",
    )
    assert (status, code) == (400, "IncorrectState")
    assert message == f"Instance '{instance['InstanceId']}' is not 'running'."


def test_a_volume_is_attached_to_one_instance_at_a_time(ec2, running, home):
    first, second = running(MinCount=2, MaxCount=2)
    attach(ec2, home, first)
    code = refused(
        ec2.attach_volume,
        VolumeId=home,
        InstanceId=second["InstanceId"],
        Device="/dev/sdf",
    )[1]
    assert code == "VolumeInUse"


def test_a_volume_of_another_zone_cannot_be_attached(ec2, running, home):
    (instance,) = running(Placement={"AvailabilityZone": "us-east-1b"})
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


def test_a_device_name_is_taken_once(ec2, running, home):
    (instance,) = running()
    code = refused(
        ec2.attach_volume,
        VolumeId=home,
        InstanceId=instance["InstanceId"],
        Device="/dev/sda1",
    )[1]
    assert code == "InvalidParameterValue"


def test_a_volume_in_use_cannot_be_deleted(emulator, ec2, running, home):
    (instance,) = running()
    attach(ec2, home, instance)
    assert refused(ec2.delete_volume, VolumeId=home)[1] == "VolumeInUse"
    ec2.detach_volume(VolumeId=home, InstanceId=instance["InstanceId"])
    emulator.advance(0.5)
    ec2.delete_volume(VolumeId=home)
    status, code, message = refused(ec2.describe_volumes, VolumeIds=[home])
    assert (status, code) == (400, "InvalidVolume.NotFound")
    assert message == f"The volume '{home}' does not exist."


def test_volumes_are_found_by_attachment_zone_state_and_tag(
    emulator, ec2, running, home
):
    ec2.create_tags(Resources=[home], Tags=[{"Key": "owner", "Value": "alice"}])
    (instance,) = running()
    attach(ec2, home, instance)
    emulator.advance(1)
    for name, value in {
        "attachment.instance-id": instance["InstanceId"],
        "attachment.device": "/dev/sd*",
        "attachment.status": "attached",
        "attachment.delete-on-termination": "false",
        "availability-zone": "us-east-1a",
        "status": "in-use",
        "encrypted": "true",
        "tag:owner": "alice",
    }.items():
        asked = {"Filters": [{"Name": name, "Values": [value]}], "VolumeIds": [home]}
        found = ec2.describe_volumes(**asked)["Volumes"]
        assert [one["VolumeId"] for one in found] == [home], name
    elsewhere = {"Name": "attachment.instance-id", "Values": ["i-0123456789abcdef0"]}
    assert ec2.describe_volumes(VolumeIds=[home], Filters=[elsewhere])["Volumes"] == []


def test_an_unknown_filter_and_a_malformed_id_are_refused(ec2):
    code = refused(
        ec2.describe_volumes, Filters=[{"Name": "colour", "Values": ["red"]}]
    )[1]
    assert code == "InvalidParameterValue"
    code = refused(ec2.describe_volumes, VolumeIds=["home"])[1]
    assert code == "InvalidParameterValue"


def test_a_volume_grows_and_does_not_shrink(ec2, home):
    ec2.modify_volume(VolumeId=home, Size=120)
    assert volume_of(ec2, home)["Size"] == 120
    status, code, message = refused(ec2.modify_volume, VolumeId=home, Size=100)
    assert (status, code) == (400, "InvalidParameterValue")
    assert message == "New size cannot be smaller than existing size"


def test_a_volume_changes_four_times_a_day(emulator, ec2, home):
    for size in (101, 102, 103, 104):
        ec2.modify_volume(VolumeId=home, Size=size)
        emulator.advance(3600)
    code = refused(ec2.modify_volume, VolumeId=home, Size=105)[1]
    assert code == "VolumeModificationRateExceeded"
    emulator.advance(21 * 3600)
    ec2.modify_volume(VolumeId=home, Size=105)
    assert volume_of(ec2, home)["Size"] == 105
