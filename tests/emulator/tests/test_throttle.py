"""EC2's buckets: "Request throttling for the Amazon EC2 API" (EC2 developer guide)."""

from typing import Any

import pytest

from ec2_emulator.calls import Call
from ec2_emulator.errors import AwsError
from ec2_emulator.throttle import Throttle


@pytest.fixture
def throttle() -> Throttle:
    return Throttle()


def call(operation: str, **parameters: Any) -> Call:
    return Call("ec2", operation, "us-east-1", "ec2", "AKIA", parameters)


def admitted(throttle: Throttle, made: Call, now: float) -> bool:
    try:
        throttle.admit(made, "123456789012", now)
    except AwsError as error:
        assert error.code == "RequestLimitExceeded"
        return False
    return True


def fleet(count: int) -> Call:
    return call(
        "CreateFleet", TargetCapacitySpecification={"TotalTargetCapacity": count}
    )


def ends(count: int) -> Call:
    return call("TerminateInstances", InstanceIds=[f"i-{n}" for n in range(count)])


@pytest.mark.parametrize(("made", "each_second"), [(fleet, 2), (ends, 20)])
def test_instances_beyond_a_thousand_wait_for_the_bucket(
    throttle: Throttle, made: Any, each_second: int
) -> None:
    assert admitted(throttle, made(600), 0)
    assert not admitted(throttle, made(401), 0)
    assert admitted(throttle, made(400), 0)
    # A refused call takes nothing.
    assert not admitted(throttle, made(each_second), 0.9)
    assert admitted(throttle, made(each_second), 1)


def test_a_fleet_and_a_launch_share_their_bucket(throttle: Throttle) -> None:
    assert admitted(throttle, fleet(1000), 0)
    assert not admitted(throttle, call("RunInstances", MaxCount=1), 0)
