"""Client tokens: "Ensuring idempotency in Amazon EC2 API requests"."""

from concurrent.futures import ThreadPoolExecutor

from conftest import SPOT, refused, shown


def ids(instances):
    return [one["InstanceId"] for one in instances]


def test_the_same_request_with_the_same_token_launches_once(ec2, launch):
    first = launch(ClientToken="pool-1-slot-1", MinCount=2, MaxCount=2)
    again = launch(ClientToken="pool-1-slot-1", MinCount=2, MaxCount=2)
    assert ids(first) == ids(again)
    assert len(shown(ec2)) == 2


def test_a_retry_reports_the_current_state_and_the_same_reservation(
    emulator, ec2, launch
):
    request = {
        "ImageId": "ami-00000000000c0de01",
        "InstanceType": "g5.xlarge",
        "MinCount": 1,
        "MaxCount": 1,
        "ClientToken": "t",
    }
    first = ec2.run_instances(**request)
    emulator.advance(2)
    again = ec2.run_instances(**request)
    assert again["ReservationId"] == first["ReservationId"]
    assert again["Instances"][0]["State"]["Name"] == "running"


def test_another_type_under_the_same_token_is_a_mismatch(ec2, launch):
    launch(ClientToken="t")
    status, code, message = refused(launch, ClientToken="t", InstanceType="g4dn.xlarge")
    assert (status, code) == (400, "IdempotentParameterMismatch")
    assert message.startswith("Arguments on this idempotent request are inconsistent")
    assert len(shown(ec2)) == 1


def test_spot_and_on_demand_under_one_token_are_a_mismatch(launch):
    launch(ClientToken="t", **SPOT)
    assert refused(launch, ClientToken="t")[1] == "IdempotentParameterMismatch"


def test_another_token_launches_another_instance(ec2, launch):
    assert ids(launch(ClientToken="a")) != ids(launch(ClientToken="b"))


def test_tokens_are_case_sensitive(launch):
    assert ids(launch(ClientToken="a")) != ids(launch(ClientToken="A"))


def test_without_a_zone_the_token_holds_for_the_region(emulator, launch):
    launch(ClientToken="t")
    other = emulator.client("ec2", region="us-west-2").run_instances(
        ImageId="ami-00000000002c0de01",
        InstanceType="g5.xlarge",
        MinCount=1,
        MaxCount=1,
        ClientToken="t",
    )
    assert other["Instances"][0]["Placement"]["AvailabilityZone"] == "us-west-2a"


def test_with_an_explicit_zone_the_token_holds_for_that_zone(launch):
    in_a = launch(ClientToken="t", Placement={"AvailabilityZone": "us-east-1a"})
    in_b = launch(ClientToken="t", Placement={"AvailabilityZone": "us-east-1b"})
    assert ids(in_a) != ids(in_b)
    again = launch(ClientToken="t", Placement={"AvailabilityZone": "us-east-1b"})
    assert ids(again) == ids(in_b)


def test_a_subnet_names_its_zone(ec2, launch):
    def subnet(zone):
        filters = [{"Name": "availability-zone", "Values": [zone]}]
        return ec2.describe_subnets(Filters=filters)["Subnets"][0]["SubnetId"]

    in_a = launch(ClientToken="t", SubnetId=subnet("us-east-1a"))
    in_b = launch(ClientToken="t", SubnetId=subnet("us-east-1b"))
    assert ids(in_a) != ids(in_b)
    code = refused(
        launch, ClientToken="t", Placement={"AvailabilityZone": "us-east-1b"}
    )[1]
    assert code == "IdempotentParameterMismatch"


def test_the_token_returns_the_dead_instance_for_a_day_after_its_end(
    emulator, ec2, launch
):
    (first,) = launch(ClientToken="t")
    ec2.terminate_instances(InstanceIds=[first["InstanceId"]])
    # EC2 no longer lists the instance after an hour, but its token is still in use.
    emulator.advance(23 * 3600)
    assert shown(ec2) == []
    (again,) = launch(ClientToken="t")
    assert again["InstanceId"] == first["InstanceId"]
    assert again["State"]["Name"] == "terminated"


def test_the_token_is_free_again_more_than_a_day_after_the_end(emulator, ec2, launch):
    (first,) = launch(ClientToken="t")
    ec2.terminate_instances(InstanceIds=[first["InstanceId"]])
    emulator.advance(25 * 3600)
    (again,) = launch(ClientToken="t")
    assert again["InstanceId"] != first["InstanceId"]


def test_concurrent_identical_requests_launch_once(ec2, launch):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ids(launch(ClientToken="t")), range(16)))
    assert len({tuple(answer) for answer in answers}) == 1
    assert len(shown(ec2)) == 1


def test_a_launch_refused_for_capacity_binds_its_token_to_the_parameters(
    emulator, launch
):
    emulator.fault("RunInstances", code="InsufficientInstanceCapacity", times=1)
    assert refused(launch, ClientToken="t")[1] == "InsufficientInstanceCapacity"
    code = refused(launch, ClientToken="t", InstanceType="g4dn.xlarge")[1]
    assert code == "IdempotentParameterMismatch"
    assert len(launch(ClientToken="t")) == 1


def test_a_successful_launch_is_repeated_even_when_capacity_is_gone(emulator, launch):
    (first,) = launch(ClientToken="t")
    emulator.fault("RunInstances", code="InsufficientInstanceCapacity")
    (again,) = launch(ClientToken="t")
    assert again["InstanceId"] == first["InstanceId"]


def test_a_dry_run_does_not_use_up_the_token(launch):
    status, code, _ = refused(launch, ClientToken="t", DryRun=True)
    assert (status, code) == (412, "DryRunOperation")
    assert len(launch(ClientToken="t", InstanceType="g4dn.xlarge")) == 1


def test_a_token_of_more_than_64_characters_is_refused(launch):
    assert refused(launch, ClientToken="t" * 65)[1] == "InvalidParameterValue"


def test_a_volume_is_created_once_for_one_token(ec2):
    request = {"AvailabilityZone": "us-east-1a", "Size": 10, "ClientToken": "home"}
    first = ec2.create_volume(**request)
    assert ec2.create_volume(**request)["VolumeId"] == first["VolumeId"]
    code = refused(ec2.create_volume, **{**request, "Size": 11})[1]
    assert code == "IdempotentParameterMismatch"
    assert len(ec2.describe_volumes()["Volumes"]) == 1


def test_the_token_of_a_deleted_volume_creates_no_other_one(emulator, ec2):
    request = {"AvailabilityZone": "us-east-1a", "Size": 10, "ClientToken": "home"}
    volume = ec2.create_volume(**request)["VolumeId"]
    emulator.advance(1)
    ec2.delete_volume(VolumeId=volume)
    status, code, message = refused(ec2.create_volume, **request)
    assert (status, code) == (400, "IdempotentParameterMismatch")
    assert "associated with a resource that is already deleted" in message
    assert ec2.describe_volumes()["Volumes"] == []
