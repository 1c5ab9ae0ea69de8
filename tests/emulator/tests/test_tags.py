"""Tags: on launch, afterwards, and where they are refused."""

import pytest
from conftest import SPOT, refused, shown


def specification(kind, **tags):
    return {
        "ResourceType": kind,
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }


def as_dict(tags):
    return {one["Key"]: one["Value"] for one in tags}


def test_a_spot_launch_tags_everything_that_it_creates(ec2, launch):
    kinds = ("instance", "volume", "network-interface", "spot-instances-request")
    (instance,) = launch(
        TagSpecifications=[specification(kind, owner=kind) for kind in kinds], **SPOT
    )
    assert as_dict(instance["Tags"]) == {"owner": "instance"}
    (volume,) = ec2.describe_volumes()["Volumes"]
    assert as_dict(volume["Tags"]) == {"owner": "volume"}
    (interface,) = ec2.describe_network_interfaces()["NetworkInterfaces"]
    assert as_dict(interface["TagSet"]) == {"owner": "network-interface"}
    (request,) = ec2.describe_spot_instance_requests()["SpotInstanceRequests"]
    assert as_dict(request["Tags"]) == {"owner": "spot-instances-request"}


def test_an_on_demand_launch_cannot_tag_a_spot_request(ec2, launch):
    status, code, message = refused(
        launch, TagSpecifications=[specification("spot-instances-request", a="b")]
    )
    assert (status, code) == (400, "InvalidParameterValue")
    assert message == (
        "'spot-instances-request' is not a valid taggable resource type for this "
        "operation."
    )
    assert shown(ec2) == []


def test_tags_are_added_changed_and_removed(ec2, launch):
    (instance,) = launch(TagSpecifications=[specification("instance", a="1", b="2")])
    ids = [instance["InstanceId"]]
    ec2.create_tags(Resources=ids, Tags=[{"Key": "a", "Value": "3"}])
    ec2.delete_tags(Resources=ids, Tags=[{"Key": "b"}])
    assert as_dict(shown(ec2)[0]["Tags"]) == {"a": "3"}


def test_deleting_without_naming_tags_deletes_all(ec2, launch):
    (instance,) = launch(TagSpecifications=[specification("instance", a="1", b="2")])
    ec2.delete_tags(Resources=[instance["InstanceId"]])
    assert "Tags" not in shown(ec2)[0]


def test_deleting_with_another_value_keeps_the_tag(ec2, launch):
    (instance,) = launch(TagSpecifications=[specification("instance", a="1")])
    ids = [instance["InstanceId"]]
    ec2.delete_tags(Resources=ids, Tags=[{"Key": "a", "Value": "other"}])
    assert as_dict(shown(ec2)[0]["Tags"]) == {"a": "1"}


@pytest.mark.parametrize(
    ("resource", "code"),
    [
        ("i-0123456789abcdef0", "InvalidInstanceID.NotFound"),
        ("vol-0123456789abcdef0", "InvalidVolume.NotFound"),
        ("sg-0123456789abcdef0", "InvalidGroup.NotFound"),
        ("subnet-0123456789abcdef0", "InvalidSubnetID.NotFound"),
        ("eni-0123456789abcdef0", "InvalidNetworkInterfaceID.NotFound"),
        ("sir-01234567", "InvalidSpotInstanceRequestID.NotFound"),
    ],
)
def test_an_unknown_resource_cannot_be_tagged(ec2, resource, code):
    tags = [{"Key": "a", "Value": "b"}]
    assert refused(ec2.create_tags, Resources=[resource], Tags=tags)[1] == code


def test_one_unknown_resource_keeps_all_from_being_tagged(ec2, launch):
    (instance,) = launch()
    refused(
        ec2.create_tags,
        Resources=[instance["InstanceId"], "i-0123456789abcdef0"],
        Tags=[{"Key": "a", "Value": "b"}],
    )
    assert "Tags" not in shown(ec2)[0]


@pytest.mark.parametrize(
    ("key", "value"), [("aws:mine", "x"), ("k" * 129, "x"), ("k", "v" * 257)]
)
def test_tags_that_ec2_does_not_take(ec2, launch, key, value):
    (instance,) = launch()
    tags = [{"Key": key, "Value": value}]
    code = refused(ec2.create_tags, Resources=[instance["InstanceId"]], Tags=tags)[1]
    assert code == "InvalidParameterValue"


def test_fifty_tags_fit_and_one_more_does_not(ec2, launch):
    many = {f"k{number}": "v" for number in range(50)}
    (instance,) = launch(TagSpecifications=[specification("instance", **many)])
    code = refused(
        ec2.create_tags,
        Resources=[instance["InstanceId"]],
        Tags=[{"Key": "one-more", "Value": "v"}],
    )[1]
    assert code == "TagLimitExceeded"


def test_tags_in_instance_metadata_have_no_slash_in_their_keys(ec2, launch):
    options = {"MetadataOptions": {"InstanceMetadataTags": "enabled"}}
    message = (
        "'acme.io/lease' is not a valid tag key. Tag keys must match pattern "
        "([0-9a-zA-Z\\-_+=,.@:]{1,255}), and must not be a reserved name "
        "('.', '..', '_index')"
    )
    slash = specification("instance", **{"acme.io/lease": "x"})
    assert refused(launch, TagSpecifications=[slash], **options)[1:] == (
        "InvalidParameterValue",
        message,
    )
    (instance,) = launch(**options)
    tags = [{"Key": "acme.io/lease", "Value": "x"}]
    ids = [instance["InstanceId"]]
    assert refused(ec2.create_tags, Resources=ids, Tags=tags)[2] == message
    ec2.create_tags(Resources=ids, Tags=[{"Key": "acme.io:lease", "Value": "a/b c"}])


def test_without_tags_in_metadata_slashes_are_welcome(launch):
    slash = specification("instance", **{"acme.io/lease": "x"})
    assert len(launch(TagSpecifications=[slash])) == 1
