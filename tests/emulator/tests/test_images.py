"""Public images and the SSM parameters that name them."""

from datetime import UTC, datetime, timedelta

import pytest
from conftest import IMAGE, refused

BASE = "/aws/service/deeplearning/ami/x86_64"
NEWEST = f"{BASE}/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"
IDS = {
    "us-east-1": "ami-00000000000c0de01",
    "us-east-2": "ami-00000000001c0de01",
    "us-west-2": "ami-00000000002c0de01",
    "eu-west-1": "ami-00000000003c0de01",
    "eu-central-1": "ami-00000000004c0de01",
}


@pytest.mark.parametrize("region", IDS)
def test_the_base_image_has_its_documented_id_in_every_region(emulator, region):
    ssm, ec2 = emulator.client("ssm", region), emulator.client("ec2", region)
    image = ssm.get_parameter(Name=NEWEST)["Parameter"]["Value"]
    assert image == IDS[region]
    (shown,) = ec2.describe_images(ImageIds=[image])["Images"]
    assert shown["Name"].startswith(
        "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) "
    )
    assert shown["State"] == "available"


def test_every_deep_learning_parameter_names_an_image_that_is_there(
    emulator, ec2, clients
):
    pages = (
        clients["ssm"]
        .get_paginator("get_parameters_by_path")
        .paginate(Path="/aws/service/deeplearning/ami", Recursive=True)
    )
    images = {one["Name"]: one["Value"] for page in pages for one in page["Parameters"]}
    assert f"{BASE}/oss-nvidia-driver-gpu-pytorch-2.8-ubuntu-24.04/latest/ami-id" in (
        images
    )
    assert len(images) == 14
    shown = ec2.describe_images(ImageIds=list(images.values()))["Images"]
    assert {one["ImageId"] for one in shown} == set(images.values())


def test_images_are_found_by_owner_and_name(ec2):
    images = ec2.describe_images(
        Owners=["amazon"],
        Filters=[
            {"Name": "name", "Values": ["Deep Learning OSS Nvidia Driver AMI GPU*"]},
            {"Name": "architecture", "Values": ["x86_64"]},
        ],
    )["Images"]
    assert len(images) == 8


def test_a_launch_may_name_the_parameter_instead_of_the_image(launch):
    (instance,) = launch(ImageId=f"resolve:ssm:{NEWEST}")
    assert instance["ImageId"] == IMAGE


def test_amazon_linux_parameters_name_images_that_can_be_launched(launch):
    name = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
    (instance,) = launch(ImageId=f"resolve:ssm:{name}")
    assert instance["RootDeviceName"] == "/dev/xvda"


def test_an_unknown_parameter_is_not_found(emulator, clients):
    name = f"{BASE}/no-such-image/latest/ami-id"
    code = refused(clients["ssm"].get_parameter, Name=name)[1]
    assert code == "ParameterNotFound"


def test_an_image_of_an_instance_is_pending_until_its_snapshot_is_complete(
    emulator, ec2
):
    launched = ec2.run_instances(ImageId=IMAGE, MinCount=1, MaxCount=1)
    emulator.advance(60)
    tags = [{"Key": "team", "Value": "vision"}]
    request = {
        "InstanceId": launched["Instances"][0]["InstanceId"],
        "Name": "baked",
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": tags} for kind in ("image", "snapshot")
        ],
    }
    image = ec2.create_image(**request)["ImageId"]
    (shown,) = ec2.describe_images(ImageIds=[image])["Images"]
    assert (shown["State"], shown["Tags"]) == ("pending", tags)
    (snapshot,) = ec2.describe_snapshots(
        Filters=[{"Name": "tag:team", "Values": ["vision"]}]
    )["Snapshots"]
    assert snapshot["State"] == "pending"
    emulator.advance(5)
    (shown,) = ec2.describe_images(ImageIds=[image])["Images"]
    assert shown["State"] == "available"
    assert refused(ec2.create_image, **request)[1] == "InvalidAMIName.Duplicate"


def test_a_deprecated_image_is_found_by_its_id_only(emulator, ec2, launch):
    by_filter = {"Filters": [{"Name": "image-id", "Values": [IMAGE]}]}
    soon = datetime.now(UTC) + timedelta(hours=1)
    ec2.enable_image_deprecation(ImageId=IMAGE, DeprecateAt=soon)
    (shown,) = ec2.describe_images(**by_filter)["Images"]
    assert shown["DeprecationTime"].startswith(f"{soon:%Y-%m-%dT%H:%M}")
    emulator.advance(2 * 3600)
    assert ec2.describe_images(**by_filter)["Images"] == []
    assert ec2.describe_images(**by_filter, IncludeDeprecated=True)["Images"]
    (shown,) = ec2.describe_images(ImageIds=[IMAGE])["Images"]
    assert shown["ImageId"] == IMAGE
    assert launch()[0]["ImageId"] == IMAGE
    ec2.disable_image_deprecation(ImageId=IMAGE)
    (shown,) = ec2.describe_images(**by_filter)["Images"]
    assert "DeprecationTime" not in shown
