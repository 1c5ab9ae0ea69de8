"""An access key with a policy may do what the policy allows, and nothing else."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Control, refused

KEY = "AKIAPOOLS"
POLICY = Path(__file__).parents[3] / "docs/aws/provider.json"
CLUSTER = "gpu.platform.acme.io:cluster"


@pytest.fixture
def limited(emulator: Control) -> Any:
    """A client with the provider's policy, for the identity `ours`."""
    policy = json.loads(POLICY.read_text().replace("IDENTITY", "ours"))
    emulator.ask("POST", "/policies", {"accessKey": KEY, "policy": policy})
    return emulator.client("ec2", access_key=KEY)


def denied(call: Callable[..., Any], **request: Any) -> None:
    status, code, _ = refused(call, **request)
    assert (status, code) == (403, "UnauthorizedOperation")


def marked(kind: str, value: str = "ours") -> Any:
    return [{"ResourceType": kind, "Tags": [{"Key": CLUSTER, "Value": value}]}]


def test_a_key_without_a_policy_may_do_everything(ec2: Any, limited: Any) -> None:
    ec2.create_security_group(GroupName="theirs", Description="x")


def test_reads_are_allowed_by_their_names(limited: Any) -> None:
    limited.describe_instances()
    denied(limited.describe_key_pairs)


def test_what_is_created_must_have_the_tag(limited: Any) -> None:
    group = {"GroupName": "ours", "Description": "x"}
    denied(limited.create_security_group, **group)
    theirs = marked("security-group", "theirs")
    denied(limited.create_security_group, **group, TagSpecifications=theirs)
    limited.create_security_group(**group, TagSpecifications=marked("security-group"))


def test_what_others_own_is_neither_ended_nor_tagged(
    launch: Callable[..., list[dict[str, Any]]], limited: Any
) -> None:
    theirs, ours = (
        launch(TagSpecifications=marked("instance", owner))[0]["InstanceId"]
        for owner in ("theirs", "ours")
    )
    for instance in ([theirs], [ours, theirs]):
        denied(limited.terminate_instances, InstanceIds=instance)
    tag = [{"Key": CLUSTER, "Value": "ours"}]
    denied(limited.create_tags, Resources=[theirs], Tags=tag)
    lease = [{"Key": "gpu.platform.acme.io:lease", "Value": "alice"}]
    limited.create_tags(Resources=[ours], Tags=lease)
    name = [{"Key": "Name", "Value": "x"}]
    denied(limited.create_tags, Resources=[ours], Tags=name)
    limited.terminate_instances(InstanceIds=[ours])


def test_what_is_not_emulated_is_refused_when_it_is_attached(emulator: Control) -> None:
    statement = {"Effect": "Allow", "Action": "ec2:*", "Resource": "*"}
    for wrong, named in [
        ({"Effect": "Deny"}, "Allow"),
        ({"Condition": {"Bool": {"aws:SecureTransport": "true"}}}, "Bool"),
        ({"Condition": {"StringEquals": {"aws:PrincipalTag/x": "y"}}}, "PrincipalTag"),
        ({"NotAction": "ec2:*"}, "NotAction"),
    ]:
        policy = {"Statement": [{**statement, **wrong}]}
        status, said = emulator.refusal(
            "POST", "/policies", {"accessKey": KEY, "policy": policy}
        )
        assert status == 400 and named in said
