"""Fixtures: a ProviderConfig, and a ClusterProviderConfig with a queue, both of one
account; the pools."""

import json
import uuid
from collections.abc import Iterator

import boto3
import pytest

from environment.cluster import Cluster
from environment.configurations import Configurations
from environment.ec2 import Ec2
from environment.emulator import Emulator
from environment.pools import identity
from environment.waiting import until

from .account import Account
from .fleet import Fleet
from .strangers import Strangers
from .weather import KEY

pytest.register_assert_rewrite("main.test_account", "main.test_orphans")


@pytest.fixture
def account(cluster: Cluster, ec2: Ec2) -> Account:
    """The part of the account that belongs to this control plane."""
    return Account(ec2, until("the provider's identity", lambda: identity(cluster)))


@pytest.fixture
def strangers(ec2: Ec2) -> Iterator[Strangers]:
    planted = Strangers(ec2)
    yield planted
    planted.go()


@pytest.fixture
def fleet(
    cluster: Cluster, namespace: str, emulator: Emulator, queue: str, ec2: Ec2
) -> Iterator[Fleet]:
    configurations = Configurations(cluster, namespace, emulator)
    configurations.secret(
        f"[default]\naws_access_key_id = {KEY}\naws_secret_access_key = secret\n"
    )
    plain = configurations.apply("plain", configurations.keys())
    queues = {ec2.region: queue}
    keys = configurations.keys()
    queued = configurations.apply_to_cluster(keys, eventQueues=queues)
    yield Fleet(cluster, namespace, plain, queued)
    configurations.remove()


@pytest.fixture
def queue(ec2: Ec2) -> Iterator[str]:
    """A queue that EventBridge sends EC2's events to."""
    name = f"events-{uuid.uuid4().hex[:8]}"
    sqs = boto3.client("sqs", region_name=ec2.region)
    events = boto3.client("events", region_name=ec2.region)
    url: str = sqs.create_queue(QueueName=name)["QueueUrl"]
    asked = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    events.put_rule(Name=name, EventPattern=json.dumps({"source": ["aws.ec2"]}))
    target = {"Id": "queue", "Arn": asked["Attributes"]["QueueArn"]}
    events.put_targets(Rule=name, Targets=[target])
    yield url
    events.remove_targets(Rule=name, Ids=["queue"])
    events.delete_rule(Name=name)
    sqs.delete_queue(QueueUrl=url)
