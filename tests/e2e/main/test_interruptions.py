"""After a warning of AWS, the next instance runs before the first one ends."""

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from environment.cluster import Cluster
from environment.configurations import Configurations
from environment.objects import Object
from environment.ec2 import Ec2
from environment.emulator import Emulator
from environment.platform import Platform
from environment.pools import Pools
from environment.variants import composition
from environment.waiting import until

REGION = "us-east-1"
NOTICE = 20
CREDENTIALS = (
    "[default]\naws_access_key_id = AKIATEST\naws_secret_access_key = secret\n"
)


@pytest.fixture
def warned(cluster: Cluster, namespace: str, emulator: Emulator) -> Iterator[Object]:
    """A ClusterProviderConfig with a queue, to which EventBridge sends EC2's events."""
    name = f"events-{uuid.uuid4().hex[:8]}"
    sqs = boto3.client("sqs", region_name=REGION)
    events = boto3.client("events", region_name=REGION)
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    asked = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    events.put_rule(Name=name, EventPattern=json.dumps({"source": ["aws.ec2"]}))
    target = {"Id": "queue", "Arn": asked["Attributes"]["QueueArn"]}
    events.put_targets(Rule=name, Targets=[target])
    configurations = Configurations(cluster, namespace, emulator)
    configurations.secret(CREDENTIALS)
    yield configurations.apply_to_cluster(
        configurations.keys(), eventQueues={REGION: url}
    )
    configurations.remove()
    events.remove_targets(Rule=name, Ids=["queue"])
    events.delete_rule(Name=name)
    sqs.delete_queue(QueueUrl=url)


def ids(ec2: Ec2, namespace: str) -> list[str]:
    return [one["InstanceId"] for one in ec2.live(namespace)]


def only_id(pool: Object) -> Any:
    (instance,) = pool["status"]["atProvider"]["instances"]
    return instance["id"]


@pytest.mark.alone
def test_a_warning_brings_the_next_instance_at_once_and_ends_nothing(
    pools: Pools, ec2: Ec2, emulator: Emulator, warned: Object
) -> None:
    pools.apply("warned", providerConfigRef=warned)
    first = only_id(pools.ready("warned"))
    emulator.forget_calls()
    announced = time.monotonic()
    emulator.interrupt(first, NOTICE)
    until("another instance", lambda: len(ids(ec2, pools.namespace)) == 2, 10)
    took = time.monotonic() - announced
    print(f"a replacement {took:.1f} s after the warning")
    assert took < 5
    # The launch is in the status before the call, and the notice after it.
    until("the notice in the status", lambda: _notice(pools, first) == "Interruption")

    until("AWS to end it", lambda: first not in ids(ec2, pools.namespace))
    pool = pools.ready("warned")
    until("it to be forgotten", lambda: first not in _shown(pools))
    assert len(ids(ec2, pools.namespace)) == 1
    assert "TerminateInstances" not in emulator.calls()
    assert pool["status"]["atProvider"]["size"]["desired"] == 1
    pools.delete("warned")


def test_a_recommendation_and_another_spec_replace_where_the_spec_says_so(
    pools: Pools, ec2: Ec2, emulator: Emulator, warned: Object
) -> None:
    pools.apply("pool", providerConfigRef=warned)
    first = only_id(pools.ready("pool"))
    room = {"size": {"minimum": 1, "maximum": 2}}
    pools.patch("pool", {"forProvider": {**room, "userData": "#cloud-config\n"}})
    emulator.rebalance(first)
    until("the recommendation to be seen", lambda: "notice" in _shown(pools)[first])
    assert ids(ec2, pools.namespace) == [first], "nobody asked for a replacement"

    pools.patch("pool", {"forProvider": {"replace": {"drifted": True}}})
    until("a successor", lambda: ids(ec2, pools.namespace) not in ([first], []))
    until("it alone", lambda: len(ids(ec2, pools.namespace)) == 1)
    (second,) = ids(ec2, pools.namespace)
    assert second != first
    until("one template to be left", lambda: len(_templates(ec2, pools)) == 1)

    pools.patch("pool", {"forProvider": {"replace": {"rebalance": "ReplaceFirst"}}})
    emulator.rebalance(second)
    until("another one", lambda: ids(ec2, pools.namespace) not in ([second], []))
    until("that alone", lambda: second not in ids(ec2, pools.namespace))
    pools.delete("pool")
    assert ids(ec2, pools.namespace) == []
    assert _templates(ec2, pools) == []


def _shown(pools: Pools) -> dict[str, Object]:
    (pool,) = pools.cluster.all("spotpools", pools.namespace)
    return {one["id"]: one for one in pool["status"]["atProvider"].get("instances", [])}


def _notice(pools: Pools, instance_id: str) -> Any:
    """The kind of the announcement that the pool's status shows."""
    shown = _shown(pools).get(instance_id, {})
    return shown.get("notice", {}).get("kind")


def _templates(ec2: Ec2, pools: Pools) -> list[Object]:
    listed = ec2.client.describe_launch_templates()["LaunchTemplates"]
    mark = f"{pools.namespace}/"
    return [
        one
        for one in listed
        if any(tag["Value"].startswith(mark) for tag in one.get("Tags", []))
    ]


def test_an_instance_that_aws_is_to_retire_is_named_to_its_owner(
    platform: Platform, ec2: Ec2, emulator: Emulator
) -> None:
    platform.claim("alice")
    retired = platform.ready("alice")["instanceId"]
    emulator.schedule(retired, "instance-retirement")
    # The provider asks for EC2's checks once a minute.
    seen = platform.condition(
        "alice", "ConfigResolved", "True", "instance-retirement", 120
    )
    assert retired in seen["message"]
    assert [one["InstanceId"] for one in ec2.live(platform.namespace)] == [retired]


def test_an_interruption_is_a_condition_of_the_claim_until_the_next_instance_serves(
    platform: Platform, cluster: Cluster, emulator: Emulator, warned: Object
) -> None:
    name = f"warned-{platform.namespace}"
    composition(cluster, name, {"providerConfigRef": warned})
    try:
        platform.claim("alice", composition=name)
        first = platform.ready("alice")["instanceId"]
        emulator.interrupt(first, NOTICE)
        seen = platform.condition("alice", "Interrupting", "True")
        assert first in seen["message"]
        platform.condition("alice", "Interrupting", "False")
        assert platform.ready("alice")["instanceId"] != first
        platform.delete("alice")
    finally:
        cluster.kubectl("delete", "composition", name)
