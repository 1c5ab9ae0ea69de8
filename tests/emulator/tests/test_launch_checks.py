"""The parameters that RunInstances applies, and those that it refuses."""

import base64

import pytest
from conftest import IMAGE, SPOT, refused, shown


def test_all_or_nothing_when_minimum_equals_maximum(emulator, ec2, launch):
    emulator.fault("RunInstances", code="InsufficientInstanceCapacity", available=3)
    code = refused(launch, MinCount=5, MaxCount=5)[1]
    assert code == "InsufficientInstanceCapacity"
    assert shown(ec2) == []


def test_what_capacity_there_is_when_the_minimum_allows_it(emulator, launch):
    emulator.fault("RunInstances", code="InsufficientInstanceCapacity", available=3)
    assert len(launch(MinCount=1, MaxCount=5)) == 3
    code = refused(launch, MinCount=1, MaxCount=5)[1]
    assert code == "InsufficientInstanceCapacity"


def test_the_maximum_is_launched_when_nothing_stands_against_it(launch):
    assert len(launch(MinCount=2, MaxCount=5)) == 5


def test_a_minimum_above_the_maximum_is_refused(launch):
    assert refused(launch, MinCount=5, MaxCount=2)[1] == "InvalidParameterValue"


def test_an_unknown_type_is_refused(launch):
    status, code, message = refused(launch, InstanceType="zz9.large")
    assert (status, code) == (400, "InvalidParameterValue")
    assert message == "Invalid value 'zz9.large' for InstanceType."


def test_a_type_that_the_zone_does_not_offer_is_unsupported(launch):
    status, code, message = refused(
        launch, Placement={"AvailabilityZone": "us-east-1e"}
    )
    assert (status, code) == (400, "Unsupported")
    assert message.startswith(
        "Your requested instance type (g5.xlarge) is not supported in your requested "
        "Availability Zone (us-east-1e)."
    )
    assert "choosing us-east-1a, us-east-1b" in message


def test_without_a_zone_one_that_offers_the_type_is_taken(emulator, launch):
    for zone in ("us-east-1a", "us-east-1b"):
        emulator.fault(
            "RunInstances",
            code="InsufficientInstanceCapacity",
            match={"AvailabilityZone": zone},
        )
    (instance,) = launch()
    assert instance["Placement"]["AvailabilityZone"] == "us-east-1c"


def test_an_unknown_zone_is_refused(launch):
    code = refused(launch, Placement={"AvailabilityZone": "us-east-1z"})[1]
    assert code == "InvalidParameterValue"


@pytest.mark.parametrize(
    ("image", "code"),
    [
        ("ami-0123456789abcdef0", "InvalidAMIID.NotFound"),
        ("image-1", "InvalidAMIID.Malformed"),
        ("ami-gpu", "InvalidAMIID.Malformed"),
    ],
)
def test_an_image_that_is_not_there_is_refused(launch, image, code):
    assert refused(launch, ImageId=image)[1] == code


def test_an_image_of_another_region_is_not_found(launch):
    code = refused(launch, ImageId="ami-00000000001c0de01")[1]
    assert code == "InvalidAMIID.NotFound"


def test_an_image_for_another_architecture_is_refused(launch):
    status, code, message = refused(launch, ImageId="ami-00000000000c0de19")
    assert (status, code) == (400, "InvalidParameterValue")
    assert "does not match the architecture 'arm64'" in message


@pytest.mark.parametrize(
    ("parameter", "code"),
    [
        ({"KeyName": "nobody"}, "InvalidKeyPair.NotFound"),
        ({"SubnetId": "subnet-0123456789abcdef0"}, "InvalidSubnetID.NotFound"),
        ({"SecurityGroupIds": ["sg-0123456789abcdef0"]}, "InvalidGroup.NotFound"),
        ({"SecurityGroupIds": ["default"]}, "InvalidGroupId.Malformed"),
        ({"SecurityGroups": ["nobody"]}, "InvalidGroup.NotFound"),
        ({"IamInstanceProfile": {"Name": "nobody"}}, "InvalidParameterValue"),
        ({"MetadataOptions": {"HttpPutResponseHopLimit": 99}}, "InvalidParameterValue"),
        (
            {
                "CapacityReservationSpecification": {
                    "CapacityReservationPreference": "mine"
                }
            },
            "InvalidParameterValue",
        ),
    ],
)
def test_what_does_not_exist_is_refused_by_its_own_code(ec2, launch, parameter, code):
    assert refused(launch, **parameter)[1] == code
    assert shown(ec2) == []


def test_a_group_of_another_network_is_refused(ec2, launch):
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    group = ec2.create_security_group(GroupName="g", Description="d", VpcId=vpc)
    code, message = refused(launch, SecurityGroupIds=[group["GroupId"]])[1:]
    assert code == "InvalidParameter"
    assert "belong to different networks" in message


def test_sixteen_kibibytes_of_user_data_pass_and_one_byte_more_does_not(ec2, launch):
    (instance,) = launch(UserData="x" * 16384)
    kept = ec2.describe_instance_attribute(
        InstanceId=instance["InstanceId"], Attribute="userData"
    )["UserData"]["Value"]
    assert base64.b64decode(kept) == b"x" * 16384
    assert refused(launch, UserData="x" * 16385) == (
        400,
        "InvalidParameterValue",
        "User data is limited to 16384 bytes",
    )


@pytest.mark.parametrize("preference", ["open", "none"])
def test_an_instance_keeps_to_its_preference_for_capacity_reservations(
    launch, preference
):
    specification = {"CapacityReservationPreference": preference}
    (instance,) = launch(CapacityReservationSpecification=specification)
    assert instance["CapacityReservationSpecification"] == specification


def test_metadata_options_are_kept_and_changed_one_by_one(ec2, launch):
    (instance,) = launch(
        MetadataOptions={
            "HttpTokens": "required",
            "HttpPutResponseHopLimit": 2,
            "InstanceMetadataTags": "enabled",
        }
    )
    assert shown(ec2)[0]["MetadataOptions"]["HttpTokens"] == "required"
    ec2.modify_instance_metadata_options(
        InstanceId=instance["InstanceId"], HttpTokens="optional"
    )
    options = shown(ec2)[0]["MetadataOptions"]
    assert options["HttpTokens"] == "optional"
    assert options["HttpPutResponseHopLimit"] == 2
    assert options["InstanceMetadataTags"] == "enabled"


def test_volumes_are_the_images_with_what_the_request_changes(ec2, launch):
    (instance,) = launch(
        BlockDeviceMappings=[
            {
                "DeviceName": "/dev/sda1",
                "Ebs": {
                    "VolumeSize": 200,
                    "VolumeType": "gp3",
                    "Iops": 4000,
                    "Throughput": 250,
                    "Encrypted": True,
                },
            },
            {"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 10}},
        ]
    )
    devices = {one["DeviceName"]: one["Ebs"] for one in instance["BlockDeviceMappings"]}
    assert devices["/dev/sda1"]["DeleteOnTermination"] is True
    assert devices["/dev/sdf"]["DeleteOnTermination"] is False
    (root,) = ec2.describe_volumes(VolumeIds=[devices["/dev/sda1"]["VolumeId"]])[
        "Volumes"
    ]
    assert root["Size"] == 200
    assert (root["VolumeType"], root["Iops"], root["Throughput"]) == ("gp3", 4000, 250)
    assert root["Encrypted"] is True
    assert root["Attachments"][0]["InstanceId"] == instance["InstanceId"]


def test_without_mappings_the_root_volume_is_the_images(ec2, launch):
    (instance,) = launch()
    (device,) = instance["BlockDeviceMappings"]
    (volume,) = ec2.describe_volumes(VolumeIds=[device["Ebs"]["VolumeId"]])["Volumes"]
    assert (volume["Size"], volume["VolumeType"]) == (75, "gp3")


def test_a_root_volume_smaller_than_its_snapshot_is_refused(ec2, launch):
    mapping = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 20}}
    code, message = refused(launch, BlockDeviceMappings=[mapping])[1:]
    assert code == "InvalidBlockDeviceMapping"
    assert message.endswith("expect size >= 75GB")
    assert shown(ec2) == []


@pytest.mark.parametrize(
    ("ebs", "code"),
    [
        ({"VolumeType": "gp9"}, "InvalidParameterValue"),
        ({"VolumeType": "gp2", "Throughput": 250}, "InvalidParameterCombination"),
        ({"VolumeType": "gp2", "Iops": 4000}, "InvalidParameterCombination"),
        ({"VolumeType": "io2"}, "MissingParameter"),
        ({"KmsKeyId": "alias/mine"}, "InvalidParameterDependency"),
        ({"SnapshotId": "snap-0123456789abcdef0"}, "InvalidSnapshot.NotFound"),
    ],
)
def test_a_volume_that_cannot_be_is_refused_with_the_launch(ec2, launch, ebs, code):
    mapping = {"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 100, **ebs}}
    assert refused(launch, BlockDeviceMappings=[mapping])[1] == code
    assert shown(ec2) == []


def test_a_kept_volume_survives_its_instance(emulator, ec2, launch):
    mapping = {
        "DeviceName": "/dev/sdf",
        "Ebs": {"VolumeSize": 10, "DeleteOnTermination": False},
    }
    (instance,) = launch(BlockDeviceMappings=[mapping])
    ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    emulator.advance(1)
    (volume,) = ec2.describe_volumes()["Volumes"]
    assert (volume["Size"], volume["State"]) == (10, "available")


def test_an_instance_profile_is_kept(ec2, clients, launch):
    iam = clients["iam"]
    arn = iam.create_instance_profile(InstanceProfileName="agent")["InstanceProfile"][
        "Arn"
    ]
    launch(IamInstanceProfile={"Name": "agent"}, MinCount=2, MaxCount=2)
    instances = shown(ec2)
    assert {one["IamInstanceProfile"]["Arn"] for one in instances} == {arn}
    by_instance = [{"Name": "instance-id", "Values": [instances[1]["InstanceId"]]}]
    (association,) = ec2.describe_iam_instance_profile_associations(
        Filters=by_instance
    )["IamInstanceProfileAssociations"]
    assert association["IamInstanceProfile"]["Arn"] == arn
    ec2.disassociate_iam_instance_profile(AssociationId=association["AssociationId"])
    assert ["IamInstanceProfile" in one for one in shown(ec2)] == [True, False]


def test_a_key_pair_is_kept(ec2, launch):
    ec2.create_key_pair(KeyName="mine", KeyType="ed25519")
    assert launch(KeyName="mine")[0]["KeyName"] == "mine"


def test_a_launch_by_template_keeps_what_the_template_says(ec2, launch):
    template = ec2.create_launch_template(
        LaunchTemplateName="gpu",
        LaunchTemplateData={
            "ImageId": IMAGE,
            "InstanceType": "g6.xlarge",
            "MetadataOptions": {"HttpTokens": "required"},
            "TagSpecifications": [
                {"ResourceType": "instance", "Tags": [{"Key": "from", "Value": "lt"}]}
            ],
        },
        TagSpecifications=[
            {"ResourceType": "launch-template", "Tags": [{"Key": "of", "Value": "lt"}]}
        ],
    )["LaunchTemplate"]
    answer = ec2.run_instances(
        MinCount=1,
        MaxCount=1,
        LaunchTemplate={"LaunchTemplateName": "gpu"},
        InstanceType="g6.2xlarge",
    )
    (instance,) = answer["Instances"]
    assert instance["InstanceType"] == "g6.2xlarge"
    assert instance["ImageId"] == IMAGE
    assert instance["MetadataOptions"]["HttpTokens"] == "required"
    tags = {one["Key"]: one["Value"] for one in instance["Tags"]}
    assert tags == {
        "from": "lt",
        "aws:ec2launchtemplate:id": template["LaunchTemplateId"],
        "aws:ec2launchtemplate:version": "1",
    }


def test_an_interface_can_do_without_a_public_address(emulator, ec2, launch):
    launch(NetworkInterfaces=[{"DeviceIndex": 0, "AssociatePublicIpAddress": False}])
    emulator.advance(2)
    (instance,) = shown(ec2)
    assert instance["State"]["Name"] == "running"
    assert "PublicIpAddress" not in instance


def test_a_dry_run_launches_nothing(ec2, launch):
    assert refused(launch, DryRun=True, **SPOT)[:2] == (412, "DryRunOperation")
    assert shown(ec2) == []


def test_an_empty_zone_is_no_zone(launch):
    (instance,) = launch(Placement={"AvailabilityZone": ""})
    assert instance["Placement"]["AvailabilityZone"].startswith("us-east-1")
