"""CreateFleet of type instant."""

import pytest
from conftest import IMAGE, refused, shown

OFFERINGS = [("g5.xlarge", "us-east-1a"), ("g4dn.xlarge", "us-east-1b")]


@pytest.fixture
def fleet(ec2):
    """Requests spot instances: g5.xlarge in zone a, or g4dn.xlarge in zone b."""
    ec2.create_launch_template(
        LaunchTemplateName="pool",
        LaunchTemplateData={
            "ImageId": IMAGE,
            "MetadataOptions": {"HttpTokens": "required"},
        },
    )

    def create(
        count=1, offerings=OFFERINGS, strategy="price-capacity-optimized", **more
    ):
        overrides = [
            {"InstanceType": kind, "AvailabilityZone": zone, "Priority": place}
            for place, (kind, zone) in enumerate(offerings)
        ]
        options = {"AllocationStrategy": strategy, **more.pop("spot", {})}
        return ec2.create_fleet(
            Type="instant",
            LaunchTemplateConfigs=[
                {
                    "LaunchTemplateSpecification": {
                        "LaunchTemplateName": "pool",
                        "Version": "$Latest",
                    },
                    "Overrides": overrides,
                }
            ],
            TargetCapacitySpecification={
                "TotalTargetCapacity": count,
                "DefaultTargetCapacityType": "spot",
            },
            SpotOptions=options,
            **more,
        )

    return create


def test_the_cheapest_offering_is_taken(ec2, fleet):
    answer = fleet(3)
    assert answer["Errors"] == []
    (share,) = answer["Instances"]
    assert (share["InstanceType"], share["Lifecycle"]) == ("g4dn.xlarge", "spot")
    override = share["LaunchTemplateAndOverrides"]["Overrides"]
    assert override["AvailabilityZone"] == "us-east-1b"
    instances = shown(ec2, InstanceIds=share["InstanceIds"])
    assert len(instances) == 3
    for one in instances:
        tags = {tag["Key"]: tag["Value"] for tag in one["Tags"]}
        assert tags["aws:ec2:fleet-id"] == answer["FleetId"]
        assert one["InstanceLifecycle"] == "spot"
        assert one["MetadataOptions"]["HttpTokens"] == "required"


def test_priorities_come_before_prices(fleet):
    (share,) = fleet(strategy="capacity-optimized-prioritized")["Instances"]
    assert share["InstanceType"] == "g5.xlarge"


def test_an_offering_without_capacity_is_an_error_beside_the_instances(emulator, fleet):
    emulator.fault(
        "CreateFleet",
        code="InsufficientInstanceCapacity",
        match={"InstanceType": "g4dn.xlarge", "AvailabilityZone": "us-east-1b"},
    )
    answer = fleet(2)
    (share,) = answer["Instances"]
    assert share["InstanceType"] == "g5.xlarge"
    (error,) = answer["Errors"]
    assert error["ErrorCode"] == "InsufficientInstanceCapacity"
    override = error["LaunchTemplateAndOverrides"]["Overrides"]
    assert override["InstanceType"] == "g4dn.xlarge"


def test_a_fleet_may_be_partly_or_not_at_all_fulfilled(emulator, ec2, fleet):
    emulator.fault("CreateFleet", code="InsufficientInstanceCapacity", available=2)
    answer = fleet(5)
    assert [len(one["InstanceIds"]) for one in answer["Instances"]] == [2]
    answer = fleet(5)
    assert answer["Instances"] == []
    assert [one["ErrorCode"] for one in answer["Errors"]] == [
        "InsufficientInstanceCapacity"
    ] * 2


def test_below_its_minimum_a_fleet_launches_nothing(emulator, ec2, fleet):
    emulator.fault("CreateFleet", code="InsufficientInstanceCapacity", available=2)
    assert fleet(5, spot={"MinTargetCapacity": 3})["Instances"] == []
    assert shown(ec2) == []


def test_an_invalid_offering_is_an_error_of_its_own(fleet):
    answer = fleet(offerings=[("g5.xlarge", "us-east-1e")])
    assert answer["Instances"] == []
    assert answer["Errors"][0]["ErrorCode"] == "Unsupported"


def test_a_fleet_is_created_once_for_one_token(ec2, fleet):
    first = fleet(ClientToken="t")
    assert fleet(ClientToken="t")["FleetId"] == first["FleetId"]
    assert len(shown(ec2)) == 1
    code = refused(fleet, count=2, ClientToken="t")[1]
    assert code == "IdempotentParameterMismatch"


def test_tags_of_the_request_reach_instances_and_spot_requests(ec2, fleet):
    tags = [{"Key": "pool", "Value": "a"}]
    kinds = ("instance", "spot-instances-request", "volume", "fleet")
    fleet(TagSpecifications=[{"ResourceType": kind, "Tags": tags} for kind in kinds])
    by_tag = [{"Name": "tag:pool", "Values": ["a"]}]
    assert len(shown(ec2, Filters=by_tag)) == 1
    assert ec2.describe_spot_instance_requests(Filters=by_tag)["SpotInstanceRequests"]


def test_other_types_of_fleet_are_refused(ec2):
    status, code, _ = refused(
        ec2.create_fleet,
        LaunchTemplateConfigs=[],
        TargetCapacitySpecification={"TotalTargetCapacity": 1},
        Type="maintain",
    )
    assert (status, code) == (501, "NotImplementedByEmulator")


def test_a_zone_that_has_no_spot_is_an_error_beside_the_instances(emulator, fleet):
    emulator.fault(
        "CreateFleet",
        code="InvalidFleetConfiguration",
        place="inside",
        match={"AvailabilityZone": "us-east-1b", "MarketType": "spot"},
    )
    answer = fleet()
    (share,) = answer["Instances"]
    assert share["InstanceType"] == "g5.xlarge"
    (error,) = answer["Errors"]
    assert error["ErrorCode"] == "InvalidFleetConfiguration"
    said = "((null)) is not supported in your requested Availability Zone (us-east-1b)"
    assert said in error["ErrorMessage"]


def test_a_denial_inside_an_answer_that_succeeded(emulator, fleet):
    emulator.fault("CreateFleet", code="UnauthorizedOperation", place="inside")
    answer = fleet()
    assert answer["Instances"] == []
    assert {one["ErrorCode"] for one in answer["Errors"]} == {"UnauthorizedOperation"}


def test_a_lack_of_capacity_names_other_zones_from_call_to_call(emulator, fleet):
    emulator.fault("CreateFleet", code="InsufficientInstanceCapacity")
    said = {
        error["ErrorMessage"]
        for _ in range(3)
        for error in fleet(offerings=[("g5.xlarge", "us-east-1a")])["Errors"]
    }
    begins = (
        "We currently do not have sufficient g5.xlarge capacity in the Availability"
    )
    assert len(said) > 1
    assert all(text.startswith(begins) for text in said)


def test_instances_that_die_at_birth_are_pending_and_then_gone(emulator, ec2, fleet):
    emulator.fault("CreateFleet", effect="end", code="Client.VolumeLimitExceeded")
    (share,) = fleet()["Instances"]
    (born,) = shown(ec2, InstanceIds=share["InstanceIds"])
    assert born["State"]["Name"] == "pending"
    emulator.advance(10)
    (dead,) = shown(ec2, InstanceIds=share["InstanceIds"])
    assert dead["State"]["Name"] == "terminated"
    assert dead["StateReason"] == {
        "Code": "Client.VolumeLimitExceeded",
        "Message": "Client.VolumeLimitExceeded: Volume limit exceeded",
    }


def test_a_token_of_ended_instances_is_refused_where_ec2_does_so(emulator, ec2, fleet):
    answer = fleet(ClientToken="one")
    ec2.terminate_instances(InstanceIds=answer["Instances"][0]["InstanceIds"])
    emulator.advance(10)
    assert fleet(ClientToken="one")["FleetId"] == answer["FleetId"]
    emulator.settings(refuseEndedTokens=True)
    code = refused(fleet, ClientToken="one")[1]
    assert code == "IdempotentInstanceTerminated"


def test_an_offering_that_is_there_twice_is_refused(fleet):
    twice = [("g5.xlarge", "us-east-1a"), ("g5.xlarge", "us-east-1a")]
    assert refused(fleet, offerings=twice)[1] == "InvalidFleetConfig"


def test_a_throttle_inside_an_answer_that_succeeded(emulator, fleet):
    emulator.fault("CreateFleet", code="RequestLimitExceeded", place="inside", times=2)
    answer = fleet()
    assert answer["Instances"] == []
    assert {one["ErrorCode"] for one in answer["Errors"]} == {"RequestLimitExceeded"}
    assert fleet()["Instances"]
