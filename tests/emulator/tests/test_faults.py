"""Faults that tests request: refusals, lost replies, delays, throttling."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ConnectionClosedError
from conftest import IMAGE, SPOT, refused, shown


def test_a_fault_strikes_so_many_times(emulator, ec2, launch):
    fault = emulator.fault("RunInstances", code="InsufficientInstanceCapacity", times=2)
    for _ in range(2):
        assert refused(launch)[:2] == (500, "InsufficientInstanceCapacity")
    assert len(launch()) == 1
    (rule,) = emulator.ask("GET", "/faults")["faults"]
    assert (rule["id"], rule["hits"], rule["times"]) == (fault, 2, 0)


def test_a_fault_without_a_number_strikes_until_it_is_removed(emulator, launch):
    fault = emulator.fault("RunInstances", code="MaxSpotInstanceCountExceeded")
    for _ in range(3):
        assert refused(launch)[:2] == (400, "MaxSpotInstanceCountExceeded")
    emulator.ask("DELETE", f"/faults/{fault}")
    assert len(launch()) == 1


@pytest.mark.parametrize(
    ("match", "strikes"),
    [
        ({"InstanceType": "g5.xlarge"}, True),
        ({"InstanceType": "g4dn.xlarge"}, False),
        ({"InstanceType": "g5.*", "MarketType": "spot"}, True),
        ({"MarketType": "on-demand"}, False),
        ({"AvailabilityZone": "us-east-1b"}, True),
        ({"AvailabilityZone": "us-east-1a"}, False),
        ({"Placement.AvailabilityZone": "us-east-1b"}, True),
        ({"TagSpecifications.Tags.Value": "gpu-a"}, True),
        ({"TagSpecifications.Tags.Value": "gpu-b"}, False),
        ({"Region": "us-east-1"}, True),
    ],
)
def test_a_fault_strikes_what_it_matches(emulator, launch, match, strikes):
    emulator.fault("RunInstances", code="InsufficientInstanceCapacity", match=match)
    request = {
        "Placement": {"AvailabilityZone": "us-east-1b"},
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": [{"Key": "pool", "Value": "gpu-a"}]}
        ],
        **SPOT,
    }
    if strikes:
        assert refused(launch, **request)[1] == "InsufficientInstanceCapacity"
    else:
        assert len(launch(**request)) == 1


def test_a_zone_given_by_its_subnet_is_matched_too(emulator, ec2, launch):
    emulator.fault(
        "RunInstances",
        code="InsufficientInstanceCapacity",
        match={"AvailabilityZone": "us-east-1b"},
    )
    zone = [{"Name": "availability-zone", "Values": ["us-east-1b"]}]
    (subnet,) = ec2.describe_subnets(Filters=zone)["Subnets"]
    code = refused(launch, SubnetId=subnet["SubnetId"])[1]
    assert code == "InsufficientInstanceCapacity"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("UnauthorizedOperation", 403),
        ("AuthFailure", 401),
        ("ExpiredToken", 403),
        ("RequestLimitExceeded", 503),
        ("VcpuLimitExceeded", 400),
        ("InternalError", 500),
        ("Unavailable", 503),
    ],
)
def test_a_code_brings_its_own_status(emulator, launch, code, status):
    emulator.fault("RunInstances", code=code)
    assert refused(launch)[:2] == (status, code)


def test_status_and_message_can_be_chosen(emulator, ec2):
    emulator.fault("Describe*", code="Odd", status=418, message="a <b> & c")
    assert refused(ec2.describe_instances) == (418, "Odd", "a <b> & c")


def test_a_stopped_instance_may_find_no_capacity_when_it_starts(emulator, ec2, launch):
    (instance,) = launch()
    ids = [instance["InstanceId"]]
    emulator.advance(2)
    ec2.stop_instances(InstanceIds=ids)
    emulator.advance(1)
    emulator.fault("StartInstances", code="InsufficientInstanceCapacity", times=1)
    assert refused(ec2.start_instances, InstanceIds=ids)[0] == 500
    ec2.start_instances(InstanceIds=ids)


def test_denied_terminations_leave_the_instance_alone(emulator, ec2, launch):
    (instance,) = launch()
    ids = [instance["InstanceId"]]
    emulator.fault(
        "TerminateInstances",
        code="UnauthorizedOperation",
        match={"InstanceIds": ids[0]},
    )
    assert refused(ec2.terminate_instances, InstanceIds=ids)[0] == 403
    assert shown(ec2)[0]["State"]["Name"] == "pending"


def test_a_lost_reply_is_a_launch_all_the_same(emulator, ec2, launch):
    emulator.fault("RunInstances", effect="lose-reply", times=1)
    with pytest.raises(ConnectionClosedError):
        launch(ClientToken="t")
    (instance,) = shown(ec2, Filters=[{"Name": "client-token", "Values": ["t"]}])
    (again,) = launch(ClientToken="t")
    assert again["InstanceId"] == instance["InstanceId"]


def test_an_sdk_that_retries_a_lost_reply_still_launches_once(emulator, ec2):
    emulator.fault("RunInstances", effect="lose-reply", times=2)
    patient = emulator.client("ec2", retries={"total_max_attempts": 3})
    patient.run_instances(
        ImageId=IMAGE, InstanceType="g5.xlarge", MinCount=1, MaxCount=1
    )
    assert len(shown(ec2)) == 1
    recorded = emulator.calls("?operation=RunInstances")
    assert recorded["counts"] == {"RunInstances": 3}
    assert [one["attempt"] for one in recorded["calls"]] == [1, 2, 3]


def test_a_delay_holds_one_call_and_nobody_else(emulator, ec2):
    emulator.fault("DescribeVolumes", effect="delay", seconds=1.5)
    with ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        slow = pool.submit(ec2.describe_volumes)
        shown(ec2)
        assert not slow.done()
        slow.result()
        assert time.monotonic() - began >= 1.5


def test_a_delayed_reply_takes_effect_at_once(emulator, ec2, launch):
    emulator.fault("RunInstances", effect="delay-reply", seconds=1.5)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(launch)
        while not (listed := shown(ec2)):
            assert not slow.done()
        assert not slow.done()
        assert slow.result()[0]["InstanceId"] == listed[0]["InstanceId"]


def test_a_fault_may_strike_another_service(emulator, clients):
    emulator.fault("GetParameter", code="ThrottlingException", status=400)
    code = refused(clients["ssm"].get_parameter, Name="/x")[1]
    assert code == "ThrottlingException"
    emulator.fault("GetCallerIdentity", code="ExpiredToken")
    assert refused(clients["sts"].get_caller_identity)[:2] == (403, "ExpiredToken")


def test_run_instances_is_throttled_after_a_burst_of_five(emulator, launch):
    emulator.settings(throttle=True)
    for _ in range(5):
        launch()
    assert refused(launch)[:2] == (503, "RequestLimitExceeded")
    # The bucket gets two tokens a second.
    emulator.advance(1)
    launch()
    launch()


def test_throttling_is_off_unless_asked_for(launch):
    for _ in range(8):
        launch()


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"code": "X"}, "operation"),
        ({"operation": "RunInstances"}, "code"),
        ({"operation": "RunInstances", "effect": "explode"}, "effect"),
        ({"operation": "RunInstances", "code": "X", "times": 0}, "times"),
        ({"operation": "RunInstances", "code": "X", "status": "500"}, "status"),
        ({"operation": "RunInstances", "code": "X", "matches": {}}, "matches"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused_by_field(emulator, document, field):
    status, message = emulator.refusal("POST", "/faults", document)
    assert status == 400
    assert message.startswith(f"{field}:")
