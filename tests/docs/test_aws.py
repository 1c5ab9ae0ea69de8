"""The resources for an AWS account: permissions, queue and rule."""

import json
import re
from typing import Any

import pytest
import yaml
from moto.events.models import EventPattern

from documents import policies
from documents.markdown import ROOT
from documents.schemas import strict, violations

SCHEMAS = ROOT / "tests/docs/schemas"
TEMPLATE = "interruptions.yaml"
# The tag that the provider puts on all resources that it creates (api/src/tags.rs).
OURS = "aws:ResourceTag/gpu.platform.acme.io:cluster"
NEW = "aws:RequestTag/gpu.platform.acme.io:cluster"
# The text that install.md replaces by the identity of the control plane.
IDENTITY = "IDENTITY"
# The tag of the machines from which images are made.
BUILDERS = "gpu.platform.acme.io:image-build"
# Operations that the provider may call only on resources with this tag.
DESTRUCTIVE = (
    "Attach",
    "Authorize",
    "Delete",
    "Detach",
    "Modify",
    "Revoke",
    "Stop",
    "Terminate",
)

POLICIES = sorted(file.name for file in policies.FOLDER.glob("*.json"))
# The policies of the provider's own role. The other files are trust policies, and
# policies for configurations with roles and instance profiles.
PROVIDERS = ["provider.json", "interruptions.json"]
TRUSTS = ["trust-irsa.json", "trust-pod-identity.json"]


def _grammar() -> Any:
    return yaml.safe_load((SCHEMAS / "iam-policy.yaml").read_text())


@pytest.mark.parametrize("name", POLICIES)
def test_iam_takes_the_policy(name: str) -> None:
    policy = json.loads((policies.FOLDER / name).read_text())
    assert violations(policy, _grammar()) == []
    # IAM's limit for a managed policy, without white space, is 6144 characters.
    assert len(json.dumps(policy, separators=(",", ":"))) <= 6144
    sids = [one["Sid"] for one in policy["Statement"] if "Sid" in one]
    assert len(sids) == len(set(sids)), "a Sid is there twice"


def test_every_call_of_the_source_is_recognised() -> None:
    sent, recognised = policies.requests_and_calls()
    assert sent == recognised > 0


def test_the_provider_may_do_what_it_does_and_nothing_more() -> None:
    granted = set().union(*(policies.actions(policies.read(n)) for n in PROVIDERS))
    of_pools = {one for one in policies.called() if not one.startswith("sts:")}
    assert granted == of_pools


def test_roles_may_be_assumed_as_the_provider_assumes_them() -> None:
    # AWS answers it without a permission ("GetCallerIdentity").
    needed = {one for one in policies.called() if one.startswith("sts:")}
    needed -= {"sts:GetCallerIdentity"}
    granted = [
        policies.actions(policies.read(n)) for n in [*TRUSTS, "assume-role.json"]
    ]
    assert set().union(*granted) == needed


@pytest.mark.parametrize("name", PROVIDERS)
def test_nothing_of_somebody_else_is_ended_or_changed(name: str) -> None:
    for statement in policies.read(name):
        for action in policies.listed(statement["Action"]):
            assert "*" not in action, "a wildcard grants what nobody reads"
            service, operation = action.split(":")
            if service == "ec2" and operation.startswith(DESTRUCTIVE):
                condition = statement.get("Condition", {})
                assert condition["StringEquals"] == {OURS: IDENTITY}, action


def test_the_builder_of_images_may_do_what_it_does_to_its_own_machines() -> None:
    statements = policies.read("image-builder.json")
    assert policies.actions(statements) == policies.called_by_the_builder()
    tag = f"aws:ResourceTag/{BUILDERS}"
    for statement in statements:
        for action in policies.listed(statement["Action"]):
            operation = action.removeprefix("ec2:")
            condition = statement.get("Condition", {})
            is_machine = statement["Resource"] == "arn:aws:ec2:*:*:instance/*"
            if operation.startswith((*DESTRUCTIVE, "GetConsole")):
                assert is_machine and condition["Null"][tag] == "false"
            if operation == "CreateImage" and is_machine:
                assert condition["Null"][tag] == "false"
            if operation == "RunInstances" and is_machine:
                asked = f"aws:RequestTag/{BUILDERS}"
                assert condition["Null"][asked] == "false"
    source = (ROOT / "images/builder/src/main.rs").read_text()
    assert f'const TAG: &str = "{BUILDERS}";' in source


def test_provider_aws_creates_and_changes_workspaces_of_its_configuration_only() -> (
    None
):
    for statement in policies.read("provider-aws.json"):
        actions = {a.removeprefix("ec2:") for a in policies.listed(statement["Action"])}
        if all(action.startswith("Describe") for action in actions):
            continue
        resources = policies.listed(statement["Resource"])
        used = [one for one in resources if _is_used_only(one, actions)]
        if used:
            assert used == resources, "what is used and what is created are apart"
            continue
        condition = statement["Condition"]
        # A volume or an instance is created with tags, and later found by them.
        kind = "RequestTag" if "ec2:CreateAction" in str(condition) else "ResourceTag"
        if actions <= {"CreateSecurityGroup", "CreateVolume", "RunInstances"}:
            kind = "RequestTag"
        assert condition["StringLike"] == {f"aws:{kind}/workspace": "*/*"}
        # provider-aws gives the disks of an instance the tags of the workspace only.
        if resources != ["arn:aws:ec2:*:*:volume/*"]:
            equals = condition["StringEquals"]
            assert equals[f"aws:{kind}/crossplane-providerconfig"] == "CONFIG"


def _is_used_only(resource: str, actions: set[str]) -> bool:
    """Whether these actions use resources of this kind, and create none."""
    kind = resource.rpartition(":")[2].removesuffix("/*")
    if actions == {"RunInstances"}:
        return kind not in ("instance", "volume")
    return actions == {"CreateSecurityGroup"} and kind == "vpc"


def test_the_page_fills_in_the_configuration_of_provider_aws() -> None:
    text = (policies.FOLDER / "provider-aws.json").read_text()
    assert text.count('"CONFIG"') == text.count("/crossplane-providerconfig")
    page = (ROOT / "docs/install.md").read_text()
    assert 'sed "s/CONFIG/default/" docs/aws/provider-aws.json' in page


def test_no_volume_of_somebody_else_is_copied() -> None:
    copies = [
        one
        for one in policies.read("provider.json")
        if "ec2:CreateSnapshot" in policies.listed(one["Action"])
    ]
    (new,) = [one for one in copies if NEW in one["Condition"]["StringEquals"]]
    (of,) = [one for one in copies if one is not new]
    sources = ["arn:aws:ec2:*:*:volume/*", "arn:aws:ec2:*::snapshot/*"]
    assert of["Resource"] == sources
    assert of["Condition"] == {"StringEquals": {OURS: IDENTITY}}


# The resources that each operation creates, and those that it only uses.
CREATED = {
    "ec2:CreateFleet": {"fleet", "instance", "volume"},
    "ec2:RunInstances": {"fleet", "instance", "volume"},
    "ec2:CreateLaunchTemplate": {"launch-template"},
    "ec2:CreateSecurityGroup": {"security-group"},
    "ec2:CreateSnapshot": {"snapshot"},
    "ec2:CreateVolume": {"volume"},
}


def _allows(action: str, kind: str, tags: dict[str, str]) -> bool:
    """Whether the policy allows an action on a resource of this kind. `tags` are the values
    of the condition keys of the request and the resource."""
    for statement in policies.read("provider.json"):
        arns = policies.listed(statement["Resource"])
        is_kind = any(arn == "*" or arn.endswith(f":{kind}/*") for arn in arns)
        wanted = statement.get("Condition", {}).get("StringEquals", {})
        is_met = all(
            tags.get(key) in policies.listed(value) for key, value in wanted.items()
        )
        if action in policies.listed(statement["Action"]) and is_kind and is_met:
            return True
    return False


@pytest.mark.parametrize("action", CREATED)
def test_nothing_is_created_without_the_tag_of_the_control_plane(action: str) -> None:
    for kind in CREATED[action]:
        assert _allows(action, kind, {NEW: IDENTITY})
        assert not _allows(action, kind, {}), f"an untagged {kind}"
        assert not _allows(action, kind, {NEW: "another"}), kind
    for statement in policies.read("provider.json"):
        if action in policies.listed(statement["Action"]):
            assert statement["Resource"] != "*"


def test_no_snapshot_of_somebody_else_becomes_a_volume() -> None:
    assert _allows("ec2:CreateVolume", "snapshot", {OURS: IDENTITY})
    assert not _allows("ec2:CreateVolume", "snapshot", {})
    assert not _allows("ec2:CreateVolume", "snapshot", {OURS: "another"})


def test_no_instance_starts_from_a_template_of_somebody_else() -> None:
    for action in ("ec2:CreateFleet", "ec2:RunInstances"):
        assert _allows(action, "launch-template", {OURS: IDENTITY})
        assert not _allows(action, "launch-template", {})


def test_the_page_fills_in_the_identity_of_the_control_plane() -> None:
    text = (policies.FOLDER / "provider.json").read_text()
    assert text.count(f'"{IDENTITY}"') == text.count(":cluster")
    page = (ROOT / "docs/install.md").read_text()
    assert 'sed "s/IDENTITY/${IDENTITY:?}/" docs/aws/provider.json' in page


def test_no_console_of_somebody_else_is_read() -> None:
    (statement,) = [
        one
        for one in policies.read("provider.json")
        if "ec2:GetConsoleOutput" in policies.listed(one["Action"])
    ]
    assert statement["Resource"].endswith(":instance/*")
    assert statement["Condition"] == {"StringEquals": {OURS: IDENTITY}}


def test_tags_of_others_are_never_written() -> None:
    for statement in policies.read("provider.json"):
        if "ec2:CreateTags" in policies.listed(statement["Action"]):
            equals = statement["Condition"]["StringEquals"]
            is_at_creation = "ec2:CreateAction" in equals and equals[NEW] == IDENTITY
            assert is_at_creation or equals[OURS] == IDENTITY


def test_an_instance_writes_three_tags_of_itself_and_no_other() -> None:
    (statement,) = policies.read("agent.json")
    assert statement["Action"] == "ec2:CreateTags"
    assert statement["Resource"].endswith(":instance/*")
    condition = statement["Condition"]
    itself = {"aws:ARN": "${ec2:SourceInstanceARN}"}
    assert condition["StringEquals"] == itself
    # ForAllValues alone is also true for a request without tags.
    assert condition["Null"] == {"aws:TagKeys": "false"}
    source = (ROOT / "agent/report/src/lib.rs").read_text()
    keys = re.findall(
        r'^pub const (?:REPORT|HOST_KEY|SETUP): &str = "(.*)";', source, re.M
    )
    assert condition["ForAllValues:StringEquals"] == {"aws:TagKeys": keys}


def test_the_tag_that_binds_the_permissions_is_the_providers() -> None:
    source = (ROOT / "api/src/tags.rs").read_text()
    assert f'CLUSTER: &str = "{OURS.removeprefix("aws:ResourceTag/")}"' in source


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Reads CloudFormation's short forms as the long forms."""


def _short(loader: _Loader, tag: str, node: yaml.Node) -> Any:
    if tag == "Ref":
        return {"Ref": loader.construct_scalar(node)}
    return {"Fn::GetAtt": loader.construct_scalar(node).split(".")}


_Loader.add_multi_constructor("!", _short)


@pytest.fixture(scope="module")
def template() -> Any:
    return yaml.load((policies.FOLDER / TEMPLATE).read_text(), _Loader)


def _resource(template: Any, kind: str) -> tuple[str, Any]:
    (found,) = [
        (name, one)
        for name, one in template["Resources"].items()
        if one["Type"] == kind
    ]
    return found


@pytest.mark.parametrize(
    "file", sorted(SCHEMAS.glob("aws-*.json")), ids=lambda file: file.stem
)
def test_cloudformation_takes_the_template(template: Any, file: Any) -> None:
    """AWS's own schemas of the three resources, without unknown fields."""
    schema = json.loads(file.read_text())
    _, resource = _resource(template, schema["typeName"])
    properties = _resolved(resource["Properties"])
    assert violations(properties, strict({**schema, "type": "object"})) == []


def test_the_template_refers_to_what_it_has(template: Any) -> None:
    known = template["Resources"].keys() | template["Parameters"].keys()
    text = (policies.FOLDER / TEMPLATE).read_text()
    used = {word.split(".")[0] for word in _references(text)}
    assert used and used <= known
    schemas = {
        json.loads(f.read_text())["typeName"] for f in SCHEMAS.glob("aws-*.json")
    }
    assert {one["Type"] for one in template["Resources"].values()} == schemas


def _references(text: str) -> list[str]:
    found = []
    for part in text.split("!")[1:]:
        kind, *rest = part.replace("]", " ").split()
        assert kind in ("Ref", "GetAtt"), kind
        found.append(rest[0])
    return found


def _resolved(value: Any) -> Any:
    """Replaces references by a text, because only AWS knows their values."""
    if isinstance(value, dict):
        if value.keys() in ({"Ref"}, {"Fn::GetAtt"}):
            return "arn:aws:any:us-east-1:111122223333:reference"
        return {key: _resolved(one) for key, one in value.items()}
    return [_resolved(one) for one in value] if isinstance(value, list) else value


def test_the_rule_catches_what_the_provider_reads(template: Any) -> None:
    _, rule = _resource(template, "AWS::Events::Rule")
    pattern = EventPattern.load(json.dumps(rule["Properties"]["EventPattern"]))
    source = (ROOT / "provider/aws/src/events.rs").read_text().split("mod tests")[0]
    kinds = set(re.findall(r'\("aws\.ec2", "([^"]+)"\)', source))
    assert len(kinds) == 3
    for kind in kinds:
        event: Any = {"source": "aws.ec2", "detail-type": kind, "detail": {}}
        assert pattern.matches_event(event), kind
    other: Any = {
        "source": "aws.ec2",
        "detail-type": "EBS Volume Notification",
        "detail": {},
    }
    assert not pattern.matches_event(other)


def test_only_the_rule_may_send_to_the_queue(template: Any) -> None:
    _, policy = _resource(template, "AWS::SQS::QueuePolicy")
    document = policy["Properties"]["PolicyDocument"]
    assert violations(_resolved(document), _grammar()) == []
    allowed = [one for one in document["Statement"] if one["Effect"] == "Allow"]
    rule, _ = _resource(template, "AWS::Events::Rule")
    (one,) = allowed
    assert one["Principal"] == {"Service": "events.amazonaws.com"}
    assert one["Action"] == "sqs:SendMessage"
    source = {"aws:SourceArn": {"Fn::GetAtt": [rule, "Arn"]}}
    assert one["Condition"] == {"ArnEquals": source}


def test_the_permissions_name_the_queue_that_the_template_makes(template: Any) -> None:
    queue = template["Parameters"]["QueueName"]["Default"]
    (statement,) = policies.read("interruptions.json")
    assert statement["Resource"].endswith(f":{queue}")
