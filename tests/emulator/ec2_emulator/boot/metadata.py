"""The metadata of an instance, which it reads at 169.254.169.254.

"Instance metadata categories" and "Use the Instance Metadata Service" (EC2 user guide).
"""

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from ..ec2.instance import EmulatedInstance

# The versions that SDKs and cloud-init request. All have the same content here.
VERSIONS = ("2009-04-04", "2016-09-02", "2018-09-24", "2021-03-23", "latest")

# A folder, or the text of a file.
Tree = dict[str, Any]
Credentials = Callable[[], dict[str, str]]


def tree(instance: EmulatedInstance, credentials: Credentials) -> Tree:
    """All metadata below a version. A read of the role's credentials calls
    `credentials`."""
    found: Tree = {
        "meta-data": _meta_data(instance, credentials),
        "dynamic": {"instance-identity": {"document": _identity(instance)}},
    }
    if instance.user_data:
        found["user-data"] = base64.b64decode(str(instance.user_data))
    return found


def find(whole: Tree, path: str) -> bytes | None:
    """The file at a path, or the list of a folder, or None if there is nothing."""
    at: Any = whole
    for part in filter(None, path.split("/")):
        at = at.get(part) if isinstance(at, dict) else None
        if callable(at):
            at = at()
    if isinstance(at, dict):
        lines = [name + "/" * isinstance(inner, dict) for name, inner in at.items()]
        return "\n".join(lines).encode()
    return at.encode() if isinstance(at, str) else at


def _meta_data(instance: EmulatedInstance, credentials: Credentials) -> Tree:
    zone = instance.availability_zone
    name = instance.private_dns_name
    data: Tree = {
        "ami-id": instance.image_id,
        "ami-launch-index": str(instance.ami_launch_index),
        "hostname": name,
        "instance-id": instance.id,
        "instance-life-cycle": "spot" if instance.spot_request else "on-demand",
        "instance-type": instance.instance_type,
        "local-hostname": name,
        "local-ipv4": instance.private_ip or "",
        "mac": instance.nics[0].mac_address,
        "network": {"interfaces": {"macs": _interfaces(instance)}},
        "placement": {"availability-zone": zone, "region": instance.region.name},
        "reservation-id": instance.reservation_id,
        "security-groups": "\n".join(g.name for g in instance.security_groups),
    }
    if instance.public_ip:
        data["public-ipv4"] = instance.public_ip
    if instance.metadata_options.instance_metadata_tags == "enabled":
        tags = instance.ec2_backend.tags.get(instance.id, {})
        data["tags"] = {"instance": dict(tags)}
    if instance.profile is not None:
        data["iam"] = _iam(instance, credentials)
    return data | _notices(instance)


def _interfaces(instance: EmulatedInstance) -> Tree:
    found: Tree = {}
    for number, nic in instance.nics.items():
        one = {
            "device-number": str(number),
            "interface-id": nic.id,
            "local-hostname": instance.private_dns_name,
            "local-ipv4s": nic.private_ip_address,
            "mac": nic.mac_address,
            "owner-id": instance.owner_id,
            "security-group-ids": "\n".join(group.id for group in nic.group_set),
            "subnet-id": nic.subnet.id,
            "subnet-ipv4-cidr-block": nic.subnet.cidr_block,
            "vpc-id": nic.subnet.vpc_id,
        }
        if nic.public_ip:
            one["public-ipv4s"] = nic.public_ip
        found[nic.mac_address] = one
    return found


def _iam(instance: EmulatedInstance, credentials: Credentials) -> Tree:
    profile = instance.profile or {}
    info = {
        "Code": "Success",
        "LastUpdated": _time(instance.region.clock.seconds()),
        "InstanceProfileArn": profile["Arn"],
        "InstanceProfileId": profile["Id"],
    }
    roles = instance.roles
    made = {one: lambda: json.dumps(credentials(), indent=2) for one in roles}
    return {"info": json.dumps(info, indent=2), "security-credentials": made}


def _notices(instance: EmulatedInstance) -> Tree:
    """The notices of coming events. A category exists only if it has a notice."""
    found: Tree = {}
    if instance.rebalance_at is not None:
        notice = json.dumps({"noticeTime": _time(instance.rebalance_at)})
        found["events"] = {"recommendations": {"rebalance": notice}}
    if instance.interruption_at is not None:
        time = _time(instance.interruption_at)
        action = json.dumps({"action": "terminate", "time": time})
        found["spot"] = {"instance-action": action, "termination-time": time}
    return found


def _identity(instance: EmulatedInstance) -> str:
    document = {
        "accountId": instance.owner_id,
        "architecture": instance.architecture,
        "availabilityZone": instance.availability_zone,
        "imageId": instance.image_id,
        "instanceId": instance.id,
        "instanceType": instance.instance_type,
        "pendingTime": instance.launch_time.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "privateIp": instance.private_ip,
        "region": instance.region.name,
        "version": "2017-09-30",
    }
    return json.dumps(document, indent=2)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
