"""DescribeInstances: ids, filters, pages."""

import pytest
from conftest import IMAGE, SPOT, refused, shown

TAGGED = {
    "TagSpecifications": [
        {
            "ResourceType": "instance",
            "Tags": [
                {"Key": "pool", "Value": "gpu-a"},
                {"Key": "cluster/id", "Value": "c-1"},
            ],
        }
    ]
}


@pytest.fixture
def pair(emulator, launch):
    """A running spot instance with tags, and a pending on-demand one without tags."""
    (spot,) = launch(ClientToken="spot-token", **SPOT, **TAGGED)
    emulator.advance(2)
    (plain,) = launch(
        InstanceType="g4dn.xlarge", Placement={"AvailabilityZone": "us-east-1b"}
    )
    return spot, plain


def found(ec2, **filters):
    request = [
        {"Name": name, "Values": values if isinstance(values, list) else [values]}
        for name, values in filters.items()
    ]
    return [one["InstanceId"] for one in shown(ec2, Filters=request)]


def test_filters_that_single_out_the_spot_instance(ec2, pair):
    spot, _ = pair
    running = shown(ec2, InstanceIds=[spot["InstanceId"]])[0]
    for name, value in {
        "client-token": "spot-token",
        "instance-lifecycle": "spot",
        "spot-instance-request-id": spot["SpotInstanceRequestId"],
        "tag:pool": "gpu-a",
        "tag:cluster/id": "c-1",
        "tag-key": "pool",
        "tag-value": "gpu-a",
        "instance-state-name": "running",
        "instance-state-code": "16",
        "instance-id": spot["InstanceId"],
        "instance-type": "g5.xlarge",
        "availability-zone": "us-east-1a",
        "ip-address": running["PublicIpAddress"],
        "private-ip-address": running["PrivateIpAddress"],
        "dns-name": running["PublicDnsName"],
        "subnet-id": running["SubnetId"],
        "network-interface.subnet-id": running["SubnetId"],
        "network-interface.addresses.association.public-ip": running["PublicIpAddress"],
        "block-device-mapping.volume-id": running["BlockDeviceMappings"][0]["Ebs"][
            "VolumeId"
        ],
    }.items():
        assert found(ec2, **{name: value}) == [spot["InstanceId"]], name


def test_filters_that_both_instances_pass(ec2, pair):
    both = [one["InstanceId"] for one in pair]
    group = pair[0]["SecurityGroups"][0]
    for name, value in {
        "image-id": "ami-00000000000c0de01",
        "instance.group-id": group["GroupId"],
        "instance.group-name": "default",
        "vpc-id": pair[0]["VpcId"],
        "architecture": "x86_64",
        "root-device-name": "/dev/sda1",
        "metadata-options.http-tokens": "optional",
        "instance-state-name": ["pending", "running"],
    }.items():
        assert found(ec2, **{name: value}) == both, name


def test_filters_are_joined_by_and(ec2, pair):
    assert found(ec2, **{"instance-lifecycle": "spot", "tag:pool": "other"}) == []


def test_values_may_hold_wildcards_and_escaped_ones(ec2, launch):
    def tagged(value):
        specification = {
            "ResourceType": "instance",
            "Tags": [{"Key": "k", "Value": value}],
        }
        return launch(TagSpecifications=[specification])[0]["InstanceId"]

    star, word = tagged("a*c"), tagged("abc")
    assert found(ec2, **{"tag:k": "a*"}) == [star, word]
    assert found(ec2, **{"tag:k": "a?c"}) == [star, word]
    assert found(ec2, **{"tag:k": "a\\*c"}) == [star]
    assert found(ec2, **{"tag:k": "ABC"}) == []
    assert found(ec2, **{"tag:k": "a.c"}) == []


def test_an_unknown_filter_is_an_invalid_parameter(ec2):
    status, code, message = refused(
        ec2.describe_instances, Filters=[{"Name": "colour", "Values": ["red"]}]
    )
    assert (status, code) == (400, "InvalidParameterValue")
    assert message == "The filter 'colour' is invalid"


def test_a_filter_that_is_not_emulated_says_so(ec2):
    status, code, _ = refused(
        ec2.describe_instances, Filters=[{"Name": "outpost-arn", "Values": ["x"]}]
    )
    assert (status, code) == (501, "NotImplementedByEmulator")


def test_a_malformed_id_and_an_unknown_one(ec2, launch):
    assert refused(ec2.describe_instances, InstanceIds=["nonsense"]) == (
        400,
        "InvalidInstanceID.Malformed",
        'Invalid id: "nonsense"',
    )
    assert refused(ec2.describe_instances, InstanceIds=["i-0123456789abcdef0"]) == (
        400,
        "InvalidInstanceID.NotFound",
        "The instance ID 'i-0123456789abcdef0' does not exist",
    )
    message = refused(ec2.describe_instances, InstanceIds=["i-01234567", "i-89abcdef"])
    assert message[2] == "The instance IDs 'i-01234567, i-89abcdef' do not exist"


def test_ids_and_filters_narrow_each_other(ec2, pair):
    ids = [one["InstanceId"] for one in pair]
    only_spot = [{"Name": "instance-lifecycle", "Values": ["spot"]}]
    assert [
        one["InstanceId"] for one in shown(ec2, InstanceIds=ids, Filters=only_spot)
    ] == ids[:1]


def test_pages_count_instances_not_reservations(ec2, launch):
    launch(MinCount=7, MaxCount=7)
    launch(MinCount=6, MaxCount=6)
    first = ec2.describe_instances(MaxResults=5)
    sizes = [len(one["Instances"]) for one in first["Reservations"]]
    assert sizes == [5]
    second = ec2.describe_instances(MaxResults=5, NextToken=first["NextToken"])
    # The page has the rest of the first reservation and the beginning of the second.
    assert [len(one["Instances"]) for one in second["Reservations"]] == [2, 3]
    last = ec2.describe_instances(MaxResults=5, NextToken=second["NextToken"])
    assert "NextToken" not in last
    pages = (first, second, last)
    ids = [
        one["InstanceId"]
        for page in pages
        for reservation in page["Reservations"]
        for one in reservation["Instances"]
    ]
    assert len(set(ids)) == len(ids) == 13


def test_without_a_maximum_everything_comes_at_once(ec2, launch):
    launch(MinCount=120, MaxCount=120)
    answer = ec2.describe_instances()
    assert sum(len(one["Instances"]) for one in answer["Reservations"]) == 120
    assert "NextToken" not in answer


def test_a_page_skips_nobody_when_an_instance_is_forgotten_between(
    emulator, ec2, launch
):
    emulator.settings(terminatedRetentionSeconds=5)
    instances = launch(MinCount=10, MaxCount=10)
    first = ec2.describe_instances(MaxResults=5)
    gone = [one["InstanceId"] for one in instances[:3]]
    ec2.terminate_instances(InstanceIds=gone)
    emulator.advance(10)
    second = ec2.describe_instances(MaxResults=5, NextToken=first["NextToken"])
    assert [one["InstanceId"] for one in second["Reservations"][0]["Instances"]] == [
        one["InstanceId"] for one in instances[5:]
    ]


def test_fewer_than_five_results_cannot_be_asked_for(ec2):
    assert refused(ec2.describe_instances, MaxResults=4)[1] == "InvalidParameterValue"


def test_a_page_size_and_ids_exclude_each_other(ec2, launch):
    (instance,) = launch()
    code = refused(
        ec2.describe_instances, InstanceIds=[instance["InstanceId"]], MaxResults=10
    )[1]
    assert code == "InvalidParameterCombination"


def test_a_made_up_token_and_one_of_another_request_are_refused(ec2, launch):
    assert refused(ec2.describe_instances, NextToken="abc")[1] == "InvalidNextToken"
    launch(MinCount=6, MaxCount=6)
    token = ec2.describe_instances(MaxResults=5)["NextToken"]
    code = refused(
        ec2.describe_instances,
        NextToken=token,
        Filters=[{"Name": "instance-lifecycle", "Values": ["spot"]}],
    )[1]
    assert code == "InvalidNextToken"


def test_new_instances_may_be_invisible_for_a_while(emulator, ec2, launch):
    emulator.ask("POST", "/visibility", {"seconds": 30})
    (instance,) = launch()
    ids = [instance["InstanceId"]]
    assert shown(ec2) == []
    code = refused(ec2.describe_instances, InstanceIds=ids)[1]
    assert code == "InvalidInstanceID.NotFound"
    emulator.advance(30)
    assert [one["InstanceId"] for one in shown(ec2, InstanceIds=ids)] == ids


@pytest.mark.parametrize(
    ("instance_type", "code"),
    [("g4dn.xlarge", None), ("i3.large", "UnsupportedOperation")],
)
def test_only_instances_on_nitro_have_a_latest_console_output(
    emulator, ec2, instance_type, code
):
    launched = ec2.run_instances(
        ImageId=IMAGE, InstanceType=instance_type, MinCount=1, MaxCount=1
    )
    emulator.advance(60)
    instance = launched["Instances"][0]["InstanceId"]
    assert "Output" in ec2.get_console_output(InstanceId=instance)
    if code:
        assert (
            refused(ec2.get_console_output, InstanceId=instance, Latest=True)[1] == code
        )
    else:
        assert "Output" in ec2.get_console_output(InstanceId=instance, Latest=True)


def test_a_zone_that_is_down_fails_calls_that_do_not_name_others_only(
    emulator, ec2, launch
):
    def placed(zone: str) -> str:
        (one,) = launch(
            InstanceType="g4dn.xlarge", Placement={"AvailabilityZone": zone}
        )
        return one["InstanceId"]

    here, there = placed("us-east-1a"), placed("us-east-1b")
    emulator.settings(zoneDown="us-east-1b")
    by_filter = {"Filters": [{"Name": "instance-id", "Values": [here]}]}
    for asked in ({}, by_filter, {"InstanceIds": [here, there]}):
        assert refused(ec2.describe_instances, **asked)[:2] == (500, "InternalError")
    ended = refused(ec2.terminate_instances, InstanceIds=[there])
    assert ended[:2] == (500, "InternalError")
    assert [one["InstanceId"] for one in shown(ec2, InstanceIds=[here])] == [here]
    assert refused(placed, zone="us-east-1b")[1] == "InsufficientInstanceCapacity"
    emulator.settings(zoneDown="")
    assert len(shown(ec2)) == 2
