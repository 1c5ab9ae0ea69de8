"""An access key with a policy may do what the policy allows, and nothing else."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import IMAGE, Control, refused

KEY = "AKIAPOOLS"
POLICIES = Path(__file__).parents[3] / "docs/aws"
CLUSTER = "gpu.platform.acme.io:cluster"


@pytest.fixture
def limited(emulator: Control) -> Any:
    """A client with the provider's policy, for the identity `ours`."""
    return _limited(emulator, "provider.json", "IDENTITY", "ours")


@pytest.fixture
def upbound(emulator: Control) -> Any:
    """A client with the policy of provider-aws, for the configuration `ours`."""
    return _limited(emulator, "provider-aws.json", "CONFIG", "ours")


def _limited(emulator: Control, name: str, place: str, value: str) -> Any:
    policy = json.loads((POLICIES / name).read_text().replace(place, value))
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


def of_workspace(kind: str, config: str = "ours") -> Any:
    tags = {"crossplane-providerconfig": config, "workspace": "team/alice"}
    return {
        "ResourceType": kind,
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }


def test_provider_aws_starts_no_instance_without_the_tags_of_a_workspace(
    upbound: Any,
) -> None:
    request = {"ImageId": IMAGE, "InstanceType": "g4dn.xlarge"}
    once = {"MinCount": 1, "MaxCount": 1}
    denied(upbound.run_instances, **request, **once)
    theirs = [of_workspace("instance", "theirs"), of_workspace("volume", "theirs")]
    denied(upbound.run_instances, **request, **once, TagSpecifications=theirs)
    ours = [of_workspace("instance"), of_workspace("volume")]
    upbound.run_instances(**request, **once, TagSpecifications=ours)


def test_provider_aws_stops_and_ends_no_instance_of_others(
    emulator: Control, launch: Callable[..., list[dict[str, Any]]], upbound: Any
) -> None:
    theirs, ours = (
        launch(TagSpecifications=[of_workspace("instance", config)])[0]["InstanceId"]
        for config in ("theirs", "ours")
    )
    emulator.advance(60)
    for call in (upbound.stop_instances, upbound.terminate_instances):
        denied(call, InstanceIds=[ours, theirs])
    for instance in (ours, theirs):
        denied(
            upbound.modify_instance_attribute,
            InstanceId=instance,
            InstanceInitiatedShutdownBehavior={"Value": "terminate"},
        )
    upbound.stop_instances(InstanceIds=[ours])
    upbound.terminate_instances(InstanceIds=[ours])


def test_provider_aws_opens_no_group_of_others(ec2: Any, upbound: Any) -> None:
    theirs = ec2.create_security_group(GroupName="theirs", Description="x")["GroupId"]
    ours = upbound.create_security_group(
        GroupName="ours",
        Description="x",
        TagSpecifications=[of_workspace("security-group")],
    )["GroupId"]
    rule = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
    rules = [{**rule, "IpRanges": [{"CidrIp": "203.0.113.0/24"}]}]
    denied(
        upbound.authorize_security_group_ingress, GroupId=theirs, IpPermissions=rules
    )
    upbound.authorize_security_group_ingress(GroupId=ours, IpPermissions=rules)
    denied(upbound.delete_security_group, GroupId=theirs)
    upbound.delete_security_group(GroupId=ours)


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
