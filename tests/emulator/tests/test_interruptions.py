"""Spot interruptions, and EC2's events that EventBridge sends to a queue."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import SPOT, shown


def only(ec2):
    (instance,) = shown(ec2)
    return instance


@pytest.fixture
def spot(emulator, launch):
    (instance,) = launch(**SPOT)
    emulator.advance(2)
    return instance


@pytest.fixture
def queue(emulator, clients):
    """Creates a queue, and a rule that sends all of EC2's events to it. Returns a
    function that reads the queue."""
    sqs, events = clients["sqs"], clients["events"]
    url = sqs.create_queue(QueueName="interruptions")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])[
        "Attributes"
    ]["QueueArn"]
    events.put_rule(Name="ec2", EventPattern=json.dumps({"source": ["aws.ec2"]}))
    events.put_targets(Rule="ec2", Targets=[{"Id": "queue", "Arn": arn}])

    def read(wait=0):
        answer = sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=wait
        )
        messages = answer.get("Messages", [])
        for one in messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])
        return [json.loads(one["Body"]) for one in messages]

    return read


def test_the_instance_runs_on_for_two_minutes_and_then_goes(emulator, ec2, spot):
    emulator.ask("POST", "/interrupt", {"instanceId": spot["InstanceId"]})
    (request,) = ec2.describe_spot_instance_requests()["SpotInstanceRequests"]
    assert request["Status"]["Code"] == "instance-terminated-no-capacity"
    emulator.advance(119)
    assert only(ec2)["State"]["Name"] == "running"
    emulator.advance(3)
    ended = only(ec2)
    assert ended["State"]["Name"] == "terminated"
    assert ended["StateReason"]["Code"] == "Server.SpotInstanceTermination"
    assert ended["StateTransitionReason"].startswith("Service initiated (")
    (request,) = ec2.describe_spot_instance_requests()["SpotInstanceRequests"]
    assert request["State"] == "closed"
    assert request["Status"]["Code"] == "instance-terminated-no-capacity"


def test_an_interruption_without_notice_ends_at_once(emulator, ec2, spot):
    emulator.ask(
        "POST", "/interrupt", {"instanceId": spot["InstanceId"], "noticeSeconds": 0}
    )
    assert only(ec2)["State"]["Name"] == "shutting-down"


def test_a_user_who_is_faster_than_the_interruption_keeps_the_reason(
    emulator, ec2, spot
):
    emulator.ask("POST", "/interrupt", {"instanceId": spot["InstanceId"]})
    ec2.terminate_instances(InstanceIds=[spot["InstanceId"]])
    emulator.advance(200)
    assert only(ec2)["StateReason"]["Code"] == "Client.UserInitiatedShutdown"


def test_an_on_demand_instance_cannot_be_interrupted(emulator, launch):
    (instance,) = launch()
    status, message = emulator.refusal(
        "POST", "/interrupt", {"instanceId": instance["InstanceId"]}
    )
    assert (status, message) == (
        400,
        f"instanceId: {instance['InstanceId']} is not a spot instance",
    )


def test_the_warning_reaches_the_queue(emulator, spot, queue):
    emulator.ask("POST", "/interrupt", {"instanceId": spot["InstanceId"]})
    (event,) = queue()
    assert event["detail-type"] == "EC2 Spot Instance Interruption Warning"
    assert event["source"] == "aws.ec2"
    assert event["version"] == "0"
    assert event["account"] == "123456789012"
    assert event["region"] == "us-east-1"
    assert event["time"].endswith("Z")
    assert event["resources"] == [
        f"arn:aws:ec2:us-east-1:123456789012:instance/{spot['InstanceId']}"
    ]
    assert event["detail"] == {
        "instance-id": spot["InstanceId"],
        "instance-action": "terminate",
    }


def test_a_rebalance_recommendation_reaches_the_queue(emulator, ec2, spot, queue):
    emulator.ask("POST", "/rebalance", {"instanceId": spot["InstanceId"]})
    (event,) = queue()
    assert event["detail-type"] == "EC2 Instance Rebalance Recommendation"
    assert event["detail"] == {"instance-id": spot["InstanceId"]}
    assert only(ec2)["State"]["Name"] == "running"


def test_every_change_of_state_reaches_the_queue_in_time(emulator, queue, ec2, launch):
    emulator.settings(pendingSeconds=0.3, shuttingDownSeconds=0.3)
    emulator.let_time_pass()
    (instance,) = launch()
    # The test makes no EC2 call, but the events still come.
    states = []
    while len(states) < 2:
        states += [event["detail"]["state"] for event in queue(wait=2)]
    ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    while len(states) < 4:
        states += [event["detail"]["state"] for event in queue(wait=2)]
    assert states == ["pending", "running", "shutting-down", "terminated"]


def test_a_long_poll_keeps_nobody_waiting(emulator, queue, ec2, launch):
    with ThreadPoolExecutor(1) as pool:
        polling = pool.submit(queue, 20)
        assert shown(ec2) == []
        assert not polling.done()
        # The event of this launch ends the poll.
        launch()
        (event,) = polling.result(timeout=15)
    assert event["detail"]["state"] == "pending"


def test_an_instance_may_be_terminated_behind_everyones_back(emulator, ec2, launch):
    (instance,) = launch()
    emulator.ask("POST", "/terminate", {"instanceId": instance["InstanceId"]})
    emulator.advance(1)
    ended = only(ec2)
    assert ended["State"]["Name"] == "terminated"
    assert ended["StateReason"]["Code"] == "Client.UserInitiatedShutdown"
