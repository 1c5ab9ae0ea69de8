"""The control API itself, and calls that are not emulated."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore import UNSIGNED
from botocore.exceptions import ConnectionClosedError
from conftest import refused, shown


def test_a_ready_emulator_answers_quickly(emulator, ec2):
    ec2.describe_instances()
    (call,) = emulator.calls()["calls"]
    assert call["cpuMilliseconds"] < 500
    assert emulator.ask("GET", "/health") == {"status": "ok"}


def test_calls_are_recorded_with_parameters_and_codes(emulator, ec2, launch):
    (instance,) = launch(ClientToken="t")
    refused(ec2.describe_instances, InstanceIds=["nonsense"])
    record = emulator.calls()
    assert record["counts"] == {"DescribeInstances": 1, "RunInstances": 1}
    run, describe = record["calls"]
    assert run["parameters"]["ClientToken"] == "t"
    assert run["parameters"]["MinCount"] == 1
    assert (run["service"], run["region"], run["code"]) == ("ec2", "us-east-1", "OK")
    assert describe["parameters"] == {"InstanceIds": ["nonsense"]}
    assert (describe["status"], describe["code"]) == (
        400,
        "InvalidInstanceID.Malformed",
    )


def test_calls_can_be_counted_from_a_moment_on(emulator, ec2):
    ec2.describe_instances()
    emulator.advance(1)
    moment = emulator.ask("POST", "/clock", {})["seconds"]
    assert emulator.calls(f"?since={moment}")["calls"] == []
    ec2.describe_volumes()
    assert emulator.calls(f"?since={moment}")["counts"] == {"DescribeVolumes": 1}
    emulator.ask("DELETE", "/calls")
    assert emulator.calls() == {"counts": {}, "calls": []}


@pytest.mark.parametrize(
    ("effect", "carried_out"), [("delay", False), ("delay-reply", True)]
)
def test_a_call_under_way_is_shown_with_whether_it_took_effect(
    emulator, launch, effect, carried_out
):
    emulator.fault("RunInstances", effect=effect, seconds=1.5)
    assert under_way(emulator) == []
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(launch, ClientToken="t")
        while not (seen := under_way(emulator)) or seen[0]["carriedOut"] != carried_out:
            assert not slow.done()
        (call,) = seen
        assert (call["operation"], call["parameters"]["ClientToken"]) == (
            "RunInstances",
            "t",
        )
        assert slow.result()
    assert under_way(emulator) == []


def test_a_call_that_is_refused_or_lost_is_under_way_no_more(emulator, launch):
    emulator.fault("RunInstances", code="InternalError", times=1)
    refused(launch)
    emulator.fault("RunInstances", effect="lose-reply", times=1)
    with pytest.raises(ConnectionClosedError):
        launch()
    assert under_way(emulator) == []


def under_way(emulator):
    return emulator.calls("/under-way")["calls"]


def test_no_credential_is_recorded(emulator, clients):
    clients["sts"].assume_role_with_web_identity(
        RoleArn="arn:aws:iam::123456789012:role/pool",
        RoleSessionName="pool",
        WebIdentityToken="a-very-secret-token",
    )
    clients["ssm"].put_parameter(
        Name="/mine", Value="a-very-secret-value", Type="SecureString"
    )
    clients["sts"].get_caller_identity()
    text = str(emulator.calls())
    assert "AssumeRoleWithWebIdentity" in text
    assert "(19 characters withheld)" in text
    assert "very-secret" not in text
    assert "AKIA" not in text


def test_a_recorded_call_names_the_account_that_signed_it(emulator, ec2):
    ec2.describe_instances()
    unsigned = emulator.client("ec2", signature_version=UNSIGNED)
    unsigned.describe_instances()
    accounts = [call["account"] for call in emulator.calls()["calls"]]
    assert accounts == ["123456789012", None]


def test_the_calls_of_one_access_key_are_found(emulator, ec2):
    ec2.describe_instances()
    other = emulator.client("ec2", access_key="AKIAOTHER00000000000")
    other.describe_volumes()
    of_other = emulator.calls("?accessKey=AKIAOTHER00000000000")
    assert of_other["counts"] == {"DescribeVolumes": 1}


def test_a_request_without_a_signature_learns_the_account(emulator):
    sts = emulator.client("sts", signature_version=UNSIGNED)
    assert sts.get_caller_identity()["Account"] == "123456789012"


def test_one_key_can_expire_while_others_serve(emulator, ec2):
    emulator.fault("*", code="ExpiredToken", match={"AccessKey": "AKIAOTHER*"})
    ec2.describe_instances()
    emulator.fault("*", code="ExpiredToken", match={"AccessKey": "AKIAEXAMPLE*"})
    assert refused(ec2.describe_instances)[1] == "ExpiredToken"


def test_a_stopped_clock_goes_on_from_where_it_was(emulator):
    stopped = [emulator.ask("POST", "/clock", {})["seconds"] for _ in range(2)]
    assert stopped[0] == stopped[1]
    emulator.advance(100)
    running = emulator.ask("POST", "/clock", {"stopped": False})["seconds"]
    assert 100 <= running - stopped[0] < 105
    assert emulator.ask("POST", "/clock", {})["seconds"] > running


def test_a_reset_forgets_everything(emulator, ec2, launch):
    launch()
    emulator.fault("DescribeInstances", code="InternalError")
    emulator.settings(pendingSeconds=99)
    emulator.advance(1000)
    emulator.ask("POST", "/reset")
    assert shown(ec2) == []
    assert emulator.ask("GET", "/faults") == {"faults": []}
    assert emulator.ask("GET", "/settings")["pendingSeconds"] == 2
    assert abs(emulator.calls()["calls"][0]["time"] - time.time()) < 60


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"pendingSecond": 1}, "pendingSecond"),
        ({"pendingSeconds": "1"}, "pendingSeconds"),
        ({"pendingSeconds": -1}, "pendingSeconds"),
        ({"throttle": 1}, "throttle"),
        ({"console": 1}, "console"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_by_name(emulator, document, field):
    status, message = emulator.refusal("POST", "/settings", document)
    assert status == 400
    assert message.startswith(f"{field}:")


def test_an_unknown_control_names_the_known_ones(emulator):
    status, message = emulator.refusal("POST", "/explode")
    assert status == 404
    assert "POST /_emulator/faults" in message


def test_a_control_for_an_instance_that_is_not_there(emulator):
    for path in ("/interrupt", "/terminate", "/rebalance", "/impair"):
        assert emulator.refusal("POST", path, {})[0] == 400
        unknown = {"instanceId": "i-0123456789abcdef0"}
        assert emulator.refusal("POST", path, unknown)[0] == 404


def test_what_is_not_emulated_is_not_taken_for_passing_trouble(emulator, ec2):
    """The answer has another status, because SDKs retry after 500, 502, 503 and 504."""
    refusals = [
        refused(ec2.get_spot_placement_scores, TargetCapacity=1),
        refused(ec2.request_spot_instances, LaunchSpecification={}),
        refused(ec2.create_placement_group, GroupName="g", Strategy="cluster"),
        refused(emulator.client("pricing").describe_services),
        refused(emulator.client("service-quotas").list_services),
    ]
    assert {(status, code) for status, code, _ in refusals} == {
        (501, "NotImplementedByEmulator")
    }


def test_an_action_that_ec2_does_not_have_is_invalid(emulator):
    import urllib.error
    import urllib.request

    request = urllib.request.Request(
        f"{emulator.url}/?Action=DescribeUnicorns&Version=2016-11-15",
        headers={
            "Authorization": "AWS4-HMAC-SHA256 Credential="
            "AKIAEXAMPLE000000000/20260101/us-east-1/ec2/aws4_request"
        },
    )
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=10)
    assert caught.value.code == 400
    assert b"<Code>InvalidAction</Code>" in caught.value.read()


def test_a_thousand_tagged_instances_are_described_within_a_second(
    emulator, ec2, launch
):
    """moto alone needs more than two seconds, and its time is quadratic."""
    tags = [{"Key": f"key-{number}", "Value": "v" * 30} for number in range(5)]
    specification = {"ResourceType": "instance", "Tags": tags}
    for _ in range(10):
        launch(MinCount=100, MaxCount=100, TagSpecifications=[specification])
    emulator.ask("DELETE", "/calls")
    by_tag = [{"Name": "tag:key-1", "Values": ["v*"]}]
    assert len(shown(ec2, MaxResults=1000, Filters=by_tag)) == 1000
    assert ec2.describe_volumes(Filters=by_tag)["Volumes"] == []
    for call in emulator.calls()["calls"]:
        assert call["cpuMilliseconds"] < 1000, call["operation"]
