"""Spot Instance requests: "Spot request status"."""

from conftest import SPOT, refused, shown


def request_of(ec2, instance):
    (request,) = ec2.describe_spot_instance_requests(
        SpotInstanceRequestIds=[instance["SpotInstanceRequestId"]]
    )["SpotInstanceRequests"]
    return request


def test_a_spot_launch_leaves_a_fulfilled_request(ec2, launch):
    (instance,) = launch(**SPOT)
    assert instance["InstanceLifecycle"] == "spot"
    assert instance["SpotInstanceRequestId"].startswith("sir-")
    request = request_of(ec2, instance)
    assert request["State"] == "active"
    assert request["Status"]["Code"] == "fulfilled"
    assert request["InstanceId"] == instance["InstanceId"]
    assert request["Type"] == "one-time"
    assert request["LaunchedAvailabilityZone"] == "us-east-1a"


def test_an_on_demand_launch_leaves_none(ec2, launch):
    (instance,) = launch()
    assert "InstanceLifecycle" not in instance
    assert "SpotInstanceRequestId" not in instance
    assert ec2.describe_spot_instance_requests()["SpotInstanceRequests"] == []


def test_each_spot_instance_has_a_request_of_its_own(launch):
    instances = launch(MinCount=3, MaxCount=3, **SPOT)
    assert len({one["SpotInstanceRequestId"] for one in instances}) == 3


def test_termination_by_the_user_closes_the_request(emulator, ec2, launch):
    (instance,) = launch(**SPOT)
    ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    emulator.advance(1)
    request = request_of(ec2, instance)
    assert request["State"] == "closed"
    assert request["Status"]["Code"] == "instance-terminated-by-user"


def test_cancelling_a_request_leaves_its_instance_running(emulator, ec2, launch):
    (instance,) = launch(**SPOT)
    emulator.advance(2)
    ids = [instance["SpotInstanceRequestId"]]
    answer = ec2.cancel_spot_instance_requests(SpotInstanceRequestIds=ids)
    assert answer["CancelledSpotInstanceRequests"][0]["State"] == "cancelled"
    request = request_of(ec2, instance)
    assert request["State"] == "cancelled"
    assert request["Status"]["Code"] == "request-canceled-and-instance-running"
    assert shown(ec2)[0]["State"]["Name"] == "running"
    ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    emulator.advance(1)
    assert request_of(ec2, instance)["State"] == "cancelled"


def test_requests_can_be_filtered_by_state_instance_and_tag(emulator, ec2, launch):
    tags = {
        "TagSpecifications": [
            {
                "ResourceType": "spot-instances-request",
                "Tags": [{"Key": "pool", "Value": "a"}],
            }
        ]
    }
    (kept,) = launch(**SPOT, **tags)
    (ended,) = launch(**SPOT)
    ec2.terminate_instances(InstanceIds=[ended["InstanceId"]])
    emulator.advance(1)

    def found(name, value):
        answer = ec2.describe_spot_instance_requests(
            Filters=[{"Name": name, "Values": [value]}]
        )
        return [one["InstanceId"] for one in answer["SpotInstanceRequests"]]

    assert found("state", "active") == [kept["InstanceId"]]
    assert found("instance-id", ended["InstanceId"]) == [ended["InstanceId"]]
    assert found("tag:pool", "a") == [kept["InstanceId"]]


def test_an_unknown_request_is_not_found(ec2):
    for call in (
        ec2.describe_spot_instance_requests,
        ec2.cancel_spot_instance_requests,
    ):
        code = refused(call, SpotInstanceRequestIds=["sir-0123abcd"])[1]
        assert code == "InvalidSpotInstanceRequestID.NotFound"


def test_a_one_time_request_cannot_stop_on_interruption(launch):
    options = {
        "MarketType": "spot",
        "SpotOptions": {"InstanceInterruptionBehavior": "stop"},
    }
    code = refused(launch, InstanceMarketOptions=options)[1]
    assert code == "InvalidParameterCombination"


def test_a_persistent_spot_instance_can_be_stopped(emulator, ec2, launch):
    options = {
        "MarketType": "spot",
        "SpotOptions": {
            "SpotInstanceType": "persistent",
            "InstanceInterruptionBehavior": "stop",
        },
    }
    (instance,) = launch(InstanceMarketOptions=options)
    emulator.advance(2)
    ec2.stop_instances(InstanceIds=[instance["InstanceId"]])
    emulator.advance(1)
    request = request_of(ec2, instance)
    assert request["State"] == "disabled"
    assert request["Status"]["Code"] == "instance-stopped-by-user"


def test_a_maximum_price_below_the_market_is_too_low(launch):
    options = {"MarketType": "spot", "SpotOptions": {"MaxPrice": "0.01"}}
    assert refused(launch, InstanceMarketOptions=options)[1] == "SpotMaxPriceTooLow"
