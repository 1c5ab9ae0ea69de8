"""The permissions that a call needs: its actions, and the resources of each.

"Actions, resources, and condition keys for Amazon EC2" (Service Authorization
Reference), for the calls of provider-gpu-spot and upbound's provider-aws-ec2. Another
call needs its action on `*`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..calls import Call
from ..ec2.templates import template_version

Tags = dict[str, str]


@dataclass(frozen=True)
class Need:
    action: str
    resource: str = "*"
    # The tags that the resource has, and those that the request gives it.
    has: Tags = field(default_factory=dict)
    gets: Tags = field(default_factory=dict)
    # The call that creates the resource that CreateTags tags.
    creates: str = ""

    def values(self, key: str) -> list[str]:
        """The values of a condition key."""
        name, _, tag = key.partition("/")
        if name == "aws:TagKeys":
            return list(self.gets)
        if name == "ec2:CreateAction":
            return [self.creates] if self.creates else []
        tags = self.has if name == "aws:ResourceTag" else self.gets
        return [tags[tag]] if tag in tags else []


def needs(call: Call, region: Any) -> list[Need]:
    """What a call needs. A resource that does not exist needs nothing: EC2 answers that
    it is missing."""
    of = _Resources(call, region)
    reader = _READERS.get(call.operation)
    return list(reader(of)) if reader else [Need(f"ec2:{call.operation}")]


class _Resources:
    """The resources that a request names, or creates."""

    def __init__(self, call: Call, region: Any) -> None:
        self.operation = call.operation
        self.given = call.parameters
        self._region = region

    def named(self, kind: str, id_: str, operation: str = "") -> Iterator[Need]:
        """An existing resource with its tags."""
        tags = self._region.backend.tags.get(id_)
        if tags is None and not self._exists(kind, id_):
            return
        yield Need(
            f"ec2:{operation or self.operation}", self._arn(kind, id_), dict(tags or {})
        )

    def created(self, kind: str, operation: str = "") -> Iterator[Need]:
        """A new resource, and its tags, which need a permission of their own."""
        operation = operation or self.operation
        tags = self._tags_for(kind)
        arn = self._arn(kind, "*")
        yield Need(f"ec2:{operation}", arn, gets=tags)
        if tags:
            yield Need("ec2:CreateTags", arn, gets=tags, creates=operation)

    def plain(self, kind: str, id_: str = "*", operation: str = "") -> Need:
        """A resource whose tags do not matter."""
        return Need(f"ec2:{operation or self.operation}", self._arn(kind, id_))

    def template(self) -> tuple[str, dict[str, Any]]:
        """The id and the content of the launch template of a fleet."""
        (config,) = self.given["LaunchTemplateConfigs"]
        named = config["LaunchTemplateSpecification"]
        version = template_version(self._region.backend, named)
        return version.template.id, dict(version.data)

    def _tags_for(self, kind: str) -> Tags:
        return {
            tag["Key"]: tag.get("Value", "")
            for one in self.given.get("TagSpecifications") or []
            if one.get("ResourceType") == kind
            for tag in one.get("Tags") or []
        }

    def _exists(self, kind: str, id_: str) -> bool:
        backend = self._region.backend
        found: dict[str, Callable[[], Any]] = {
            "instance": lambda: self._region.instances.get(id_),
            "volume": lambda: backend.volumes.get(id_),
            "snapshot": lambda: backend.snapshots.get(id_),
            "security-group": lambda: backend.get_security_group_from_id(id_),
            "launch-template": lambda: backend.launch_templates.get(id_),
        }
        return found[kind]() is not None

    def _arn(self, kind: str, id_: str) -> str:
        # Images and snapshots belong to no account in their names.
        account = "" if kind in ("image", "snapshot") else self._region.account
        return f"arn:aws:ec2:{self._region.name}:{account}:{kind}/{id_}"


def _one(kind: str, parameter: str) -> Callable[[_Resources], Iterator[Need]]:
    """A call that changes or reads one resource."""
    return lambda of: of.named(kind, of.given.get(parameter, ""))


def _instances(of: _Resources) -> Iterator[Need]:
    for id_ in of.given.get("InstanceIds", []):
        yield from of.named("instance", id_)


def _tag(of: _Resources) -> Iterator[Need]:
    tags = {one["Key"]: one.get("Value", "") for one in of.given.get("Tags", [])}
    kinds = {
        "i": "instance",
        "vol": "volume",
        "snap": "snapshot",
        "sg": "security-group",
    }
    for id_ in of.given.get("Resources", []):
        kind = kinds.get(id_.partition("-")[0], "instance")
        for need in of.named(kind, id_):
            yield Need(need.action, need.resource, need.has, tags)


def _fleet(of: _Resources) -> Iterator[Need]:
    yield from of.created("fleet")
    template, content = of.template()
    yield from of.named("launch-template", template)
    yield from of.named("launch-template", template, "RunInstances")
    yield from of.created("instance", "RunInstances")
    yield from of.created("volume", "RunInstances")
    yield of.plain("image", content["ImageId"], "RunInstances")
    yield of.plain("network-interface", operation="RunInstances")
    yield of.plain("snapshot", operation="RunInstances")
    for group in content.get("SecurityGroupIds", []):
        yield of.plain("security-group", group, "RunInstances")
    for config in of.given["LaunchTemplateConfigs"]:
        for override in config.get("Overrides", []):
            yield of.plain("subnet", override.get("SubnetId", "*"), "RunInstances")


def _run(of: _Resources) -> Iterator[Need]:
    yield from of.created("instance")
    yield from of.created("volume")
    yield of.plain("image", of.given.get("ImageId", "*"))
    yield of.plain("network-interface")
    yield of.plain("snapshot")
    interfaces = of.given.get("NetworkInterfaces") or []
    for one in [of.given, *interfaces]:
        for group in one.get("SecurityGroupIds") or one.get("Groups") or []:
            yield of.plain("security-group", group)
    subnets = [one["SubnetId"] for one in [of.given, *interfaces] if "SubnetId" in one]
    for subnet in subnets or ["*"]:
        yield of.plain("subnet", subnet)
    template = of.given.get("LaunchTemplate") or {}
    if "LaunchTemplateId" in template:
        yield from of.named("launch-template", template["LaunchTemplateId"])


def _group(of: _Resources) -> Iterator[Need]:
    yield from of.created("security-group")
    yield of.plain("vpc", of.given.get("VpcId", "*"))


def _snapshot(of: _Resources) -> Iterator[Need]:
    yield from of.created("snapshot")
    yield from of.named("volume", of.given.get("VolumeId", ""))


def _volume(of: _Resources) -> Iterator[Need]:
    yield from of.created("volume")
    if of.given.get("SnapshotId"):
        yield from of.named("snapshot", of.given["SnapshotId"])


def _attach(of: _Resources) -> Iterator[Need]:
    yield from of.named("volume", of.given.get("VolumeId", ""))
    yield from of.named("instance", of.given.get("InstanceId", ""))


_READERS: dict[str, Callable[[_Resources], Iterator[Need]]] = {
    "AttachVolume": _attach,
    "AuthorizeSecurityGroupEgress": _one("security-group", "GroupId"),
    "AuthorizeSecurityGroupIngress": _one("security-group", "GroupId"),
    "CreateFleet": _fleet,
    "CreateLaunchTemplate": lambda of: of.created("launch-template"),
    "CreateSecurityGroup": _group,
    "CreateSnapshot": _snapshot,
    "CreateTags": _tag,
    "CreateVolume": _volume,
    "DeleteLaunchTemplate": _one("launch-template", "LaunchTemplateId"),
    "DeleteSecurityGroup": _one("security-group", "GroupId"),
    "DeleteSnapshot": _one("snapshot", "SnapshotId"),
    "DeleteTags": _tag,
    "DeleteVolume": _one("volume", "VolumeId"),
    "DetachVolume": _attach,
    "GetConsoleOutput": _one("instance", "InstanceId"),
    "ModifyInstanceAttribute": _one("instance", "InstanceId"),
    "ModifyInstanceMetadataOptions": _one("instance", "InstanceId"),
    "ModifyVolume": _one("volume", "VolumeId"),
    "RevokeSecurityGroupEgress": _one("security-group", "GroupId"),
    "RevokeSecurityGroupIngress": _one("security-group", "GroupId"),
    "RunInstances": _run,
    "StartInstances": _instances,
    "StopInstances": _instances,
    "TerminateInstances": _instances,
}
