"""States: "Amazon EC2 instance state changes"."""

import time
from datetime import timedelta

import pytest
from conftest import SPOT, refused, shown


def only(ec2):
    (instance,) = shown(ec2)
    return instance


def test_a_launch_answers_pending_without_a_public_address(launch):
    (instance,) = launch()
    assert instance["State"] == {"Code": 0, "Name": "pending"}
    assert "PublicIpAddress" not in instance
    assert instance["PublicDnsName"] == ""
    assert instance["StateReason"]["Code"] == "pending"


def test_an_instance_stays_pending_until_its_time_has_passed(emulator, ec2, launch):
    launch()
    emulator.advance(1.5)
    assert only(ec2)["State"]["Name"] == "pending"
    emulator.advance(0.6)
    instance = only(ec2)
    assert instance["State"] == {"Code": 16, "Name": "running"}
    assert instance["PublicDnsName"].startswith("ec2-")
    assert instance["PublicIpAddress"]
    (interface,) = instance["NetworkInterfaces"]
    assert interface["Association"]["PublicIp"] == instance["PublicIpAddress"]


def test_states_change_by_real_time_too(emulator, ec2, launch):
    emulator.settings(pendingSeconds=0.2)
    emulator.let_time_pass()
    launch()
    deadline = time.monotonic() + 30
    while only(ec2)["State"]["Name"] == "pending":
        assert time.monotonic() < deadline
    assert only(ec2)["State"]["Name"] == "running"


def test_termination_goes_through_shutting_down(emulator, ec2, launch):
    (instance,) = launch()
    emulator.advance(2)
    answer = ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    (change,) = answer["TerminatingInstances"]
    assert change["PreviousState"] == {"Code": 16, "Name": "running"}
    assert change["CurrentState"] == {"Code": 32, "Name": "shutting-down"}
    assert only(ec2)["State"]["Name"] == "shutting-down"
    emulator.advance(1)
    ended = only(ec2)
    assert ended["State"] == {"Code": 48, "Name": "terminated"}
    assert ended["StateReason"] == {
        "Code": "Client.UserInitiatedShutdown",
        "Message": "Client.UserInitiatedShutdown: User initiated shutdown",
    }
    assert ended["StateTransitionReason"].startswith("User initiated (")


def test_an_instance_that_shuts_down_has_lost_its_network_already(
    emulator, ec2, launch
):
    (instance,) = launch()
    emulator.advance(2)
    ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    ended = only(ec2)
    assert ended["State"]["Name"] == "shutting-down"
    lost = {"PrivateIpAddress", "PublicIpAddress", "SubnetId", "VpcId"}
    assert lost.isdisjoint(ended)
    assert (ended["SecurityGroups"], ended["NetworkInterfaces"]) == ([], [])


def test_a_terminated_instance_has_given_everything_up(emulator, ec2, launch):
    (instance,) = launch()
    emulator.advance(2)
    ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    emulator.advance(1)
    ended = only(ec2)
    for name in ("PublicIpAddress", "PrivateIpAddress", "SubnetId", "VpcId"):
        assert name not in ended
    for name in ("NetworkInterfaces", "BlockDeviceMappings", "SecurityGroups"):
        assert ended[name] == []
    assert ec2.describe_volumes()["Volumes"] == []
    assert ec2.describe_network_interfaces()["NetworkInterfaces"] == []


def test_an_elastic_address_outlives_its_instance(emulator, ec2, launch):
    (instance,) = launch()
    emulator.advance(2)
    address = ec2.allocate_address(Domain="vpc")
    ec2.associate_address(
        AllocationId=address["AllocationId"], InstanceId=instance["InstanceId"]
    )
    assert only(ec2)["PublicIpAddress"] == address["PublicIp"]
    ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    emulator.advance(1)
    (kept,) = ec2.describe_addresses()["Addresses"]
    assert kept["PublicIp"] == address["PublicIp"]
    assert not kept.get("InstanceId") and not kept.get("AssociationId")


def test_addresses_of_terminated_instances_can_be_used_again(emulator, ec2, launch):
    """A /28 has eleven free addresses, so twenty launches must reuse some."""
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/24")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(
        VpcId=vpc, CidrBlock="10.0.0.0/28", AvailabilityZone="us-east-1a"
    )["Subnet"]["SubnetId"]
    for _ in range(20):
        (instance,) = launch(SubnetId=subnet)
        ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
        emulator.advance(1)


def test_a_subnet_runs_out_of_addresses(ec2, launch):
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/24")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(
        VpcId=vpc, CidrBlock="10.0.0.0/28", AvailabilityZone="us-east-1a"
    )["Subnet"]["SubnetId"]
    code = refused(launch, SubnetId=subnet, MinCount=20, MaxCount=20)[1]
    assert code == "InsufficientFreeAddressesInSubnet"
    assert shown(ec2) == []
    assert len(launch(SubnetId=subnet, MinCount=5, MaxCount=5)) == 5


def test_an_interface_that_is_kept_keeps_its_address(emulator, ec2, launch):
    (instance,) = launch(
        NetworkInterfaces=[{"DeviceIndex": 0, "DeleteOnTermination": False}]
    )
    ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    emulator.advance(4000)
    (kept,) = ec2.describe_network_interfaces()["NetworkInterfaces"]
    assert kept["Status"] == "available"
    assert kept["PrivateIpAddress"] == instance["PrivateIpAddress"]
    (other,) = launch()
    assert other["PrivateIpAddress"] != kept["PrivateIpAddress"]


def test_a_terminated_instance_is_listed_for_an_hour(emulator, ec2, launch):
    (instance,) = launch()
    ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    emulator.advance(3500)
    assert only(ec2)["State"]["Name"] == "terminated"
    emulator.advance(200)
    assert shown(ec2) == []
    code = refused(ec2.describe_instances, InstanceIds=[instance["InstanceId"]])[1]
    assert code == "InvalidInstanceID.NotFound"


def test_terminating_twice_reports_terminated(emulator, ec2, launch):
    (instance,) = launch()
    ids = [instance["InstanceId"]]
    ec2.terminate_instances(InstanceIds=ids)
    emulator.advance(1)
    (change,) = ec2.terminate_instances(InstanceIds=ids)["TerminatingInstances"]
    assert change["PreviousState"]["Name"] == "terminated"
    assert change["CurrentState"]["Name"] == "terminated"


def test_an_instance_terminated_while_pending_never_runs(emulator, ec2, launch):
    emulator.settings(shuttingDownSeconds=10)
    (instance,) = launch()
    ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    emulator.advance(5)
    assert only(ec2)["State"]["Name"] == "shutting-down"


def test_one_unknown_id_keeps_all_from_being_terminated(ec2, launch):
    (instance,) = launch()
    status, code, message = refused(
        ec2.terminate_instances,
        InstanceIds=[instance["InstanceId"], "i-0123456789abcdef0"],
    )
    assert (status, code) == (400, "InvalidInstanceID.NotFound")
    assert "i-0123456789abcdef0" in message
    assert only(ec2)["State"]["Name"] == "pending"


def test_stop_protection_prevents_an_end_too(ec2, launch):
    (instance,) = launch()
    protection = {"InstanceId": instance["InstanceId"]}
    ec2.modify_instance_attribute(**protection, DisableApiStop={"Value": True})
    ids = [instance["InstanceId"]]
    code, message = refused(ec2.terminate_instances, InstanceIds=ids)[1:]
    assert code == "OperationNotPermitted"
    assert "disableApiStop" in message
    ec2.modify_instance_attribute(**protection, DisableApiStop={"Value": False})
    ec2.terminate_instances(InstanceIds=ids)


def test_termination_protection_spares_the_zone_of_the_protected_one(ec2, launch):
    (protected,) = launch(
        DisableApiTermination=True, Placement={"AvailabilityZone": "us-east-1a"}
    )
    (beside,) = launch(Placement={"AvailabilityZone": "us-east-1a"})
    (elsewhere,) = launch(Placement={"AvailabilityZone": "us-east-1b"})
    ids = [one["InstanceId"] for one in (protected, beside, elsewhere)]
    assert (
        refused(ec2.terminate_instances, InstanceIds=ids)[1] == "OperationNotPermitted"
    )
    states = {one["InstanceId"]: one["State"]["Name"] for one in shown(ec2)}
    assert [states[one] for one in ids] == ["pending", "pending", "shutting-down"]


def test_an_instance_stops_and_starts_with_a_new_address(emulator, ec2, launch):
    (instance,) = launch()
    ids = [instance["InstanceId"]]
    emulator.advance(2)
    before = only(ec2)
    (change,) = ec2.stop_instances(InstanceIds=ids)["StoppingInstances"]
    assert change["CurrentState"] == {"Code": 64, "Name": "stopping"}
    emulator.advance(1)
    stopped = only(ec2)
    assert stopped["State"] == {"Code": 80, "Name": "stopped"}
    assert "PublicIpAddress" not in stopped
    assert stopped["PrivateIpAddress"] == before["PrivateIpAddress"]
    (change,) = ec2.start_instances(InstanceIds=ids)["StartingInstances"]
    assert change["PreviousState"]["Name"] == "stopped"
    assert change["CurrentState"] == {"Code": 0, "Name": "pending"}
    emulator.advance(2)
    running = only(ec2)
    assert running["State"]["Name"] == "running"
    assert running["PublicIpAddress"] != before["PublicIpAddress"]
    assert running["LaunchTime"] > before["LaunchTime"]


def test_a_one_time_spot_instance_cannot_be_stopped(emulator, ec2, launch):
    (instance,) = launch(**SPOT)
    emulator.advance(2)
    status, code, message = refused(
        ec2.stop_instances, InstanceIds=[instance["InstanceId"]]
    )
    assert (status, code) == (400, "UnsupportedOperation")
    assert "one-time Spot Instance request" in message


def test_a_pending_instance_cannot_be_stopped_nor_a_terminated_one_started(
    emulator, ec2, launch
):
    (instance,) = launch()
    ids = [instance["InstanceId"]]
    assert refused(ec2.stop_instances, InstanceIds=ids)[1] == "IncorrectInstanceState"
    ec2.terminate_instances(InstanceIds=ids)
    emulator.advance(1)
    assert refused(ec2.start_instances, InstanceIds=ids)[1] == "IncorrectInstanceState"


def test_status_checks_initialize_and_then_pass(emulator, ec2, launch):
    launch()
    assert ec2.describe_instance_status()["InstanceStatuses"] == []
    (status,) = ec2.describe_instance_status(IncludeAllInstances=True)[
        "InstanceStatuses"
    ]
    assert status["InstanceState"]["Name"] == "pending"
    assert status["InstanceStatus"]["Status"] == "not-applicable"
    emulator.advance(2)
    (status,) = ec2.describe_instance_status()["InstanceStatuses"]
    assert status["InstanceStatus"]["Status"] == "initializing"
    emulator.advance(5)
    (status,) = ec2.describe_instance_status()["InstanceStatuses"]
    assert status["SystemStatus"]["Status"] == "ok"
    assert status["SystemStatus"]["Details"][0]["Status"] == "passed"


@pytest.mark.parametrize(
    ("check", "name"),
    [("system", "system-status"), ("ebs", "attached-ebs-status")],
)
def test_an_impaired_instance_is_found_by_its_status(
    emulator, ec2, launch, check, name
):
    sick, _ = launch(MinCount=2, MaxCount=2)
    emulator.advance(10)
    emulator.ask("POST", "/impair", {"instanceId": sick["InstanceId"], "check": check})
    (status,) = ec2.describe_instance_status(
        Filters=[{"Name": f"{name}.status", "Values": ["impaired"]}]
    )["InstanceStatuses"]
    assert status["InstanceId"] == sick["InstanceId"]
    assert status["InstanceStatus"]["Status"] == "ok"


def test_a_scheduled_event_is_shown_and_found_by_its_code(emulator, ec2, launch):
    (instance,) = launch()
    launch()
    emulator.advance(2)
    one = {"instanceId": instance["InstanceId"]}
    emulator.ask("POST", "/schedule", {**one, "code": "instance-retirement"})
    codes = ["instance-retirement", "instance-stop"]
    by_code = {"Filters": [{"Name": "event.code", "Values": codes}]}
    (status,) = ec2.describe_instance_status(**by_code)["InstanceStatuses"]
    assert status["InstanceId"] == instance["InstanceId"]
    (event,) = status["Events"]
    assert event["Code"] == "instance-retirement"
    assert event["NotBefore"] > instance["LaunchTime"] + timedelta(days=13)
    emulator.ask("POST", "/schedule", {**one, "code": None})
    assert ec2.describe_instance_status(**by_code)["InstanceStatuses"] == []
    status, message = emulator.refusal("POST", "/schedule", {**one, "code": "party"})
    assert (status, message.split(":")[0]) == (400, "code")
