"""Reads EC2 with boto3, independently of our own code."""

import base64
import re
from datetime import UTC, datetime
from typing import Any

import boto3

Instance = dict[str, Any]

POOL = "gpu.platform.acme.io:pool"
CLUSTER = "gpu.platform.acme.io:cluster"
HOME = "gpu.platform.acme.io:home"
KEYS = "gpu.platform.acme.io:authorized-key-"
# The tag of a workspace's resources that belong to no pool.
WORKSPACE = "workspace"
LIVE = ("pending", "running", "stopping", "stopped")
ENDED = ("shutting-down", "terminated")


class Ec2:
    """`mark` is the tag with the `namespace/name` of a resource's pool or workspace."""

    def __init__(self, region: str, mark: str = POOL) -> None:
        self.region = region
        self.mark = mark
        self.client = boto3.client("ec2", region_name=region)

    def instances(self, *filters: dict[str, Any]) -> list[Instance]:
        pages = self.client.get_paginator("describe_instances").paginate(
            Filters=list(filters)
        )
        return [
            instance
            for page in pages
            for reservation in page["Reservations"]
            for instance in reservation["Instances"]
        ]

    def live(self, namespace: str) -> list[Instance]:
        """The instances that EC2 bills for a namespace."""
        return [
            instance
            for instance in self.instances(self._of(namespace))
            if instance["State"]["Name"] in LIVE
        ]

    def ended(self, namespace: str) -> dict[str, datetime]:
        """When the termination of each instance of a namespace began, by the name of
        its pool or workspace."""
        return {
            tags(instance)[self.mark].removeprefix(f"{namespace}/"): _end_of(instance)
            for instance in self.instances(self._of(namespace))
            if instance["State"]["Name"] in ENDED
        }

    def instance(self, instance_id: str) -> Instance:
        (found,) = self.instances({"Name": "instance-id", "Values": [instance_id]})
        return found

    def authorized_keys(self, instance_id: str) -> list[str]:
        """The public keys in the tags of an instance, in the order of the tags."""
        found = tags(self.instance(instance_id)).items()
        return [key for tag, key in sorted(found) if tag.startswith(KEYS) and key]

    def groups(self, namespace: str) -> list[dict[str, Any]]:
        groups: list[dict[str, Any]] = self.client.describe_security_groups(
            Filters=[self._of(namespace)]
        )["SecurityGroups"]
        return groups

    def volumes(self, namespace: str) -> list[dict[str, Any]]:
        volumes: list[dict[str, Any]] = self.client.describe_volumes(
            Filters=[self._of(namespace)]
        )["Volumes"]
        return volumes

    def homes(self, namespace: str) -> list[dict[str, Any]]:
        """The home volumes of the pools of a namespace, without the disks of instances."""
        return [one for one in self.volumes(namespace) if HOME in tags(one)]

    def volume(self, volume_id: str) -> dict[str, Any]:
        (volume,) = self.client.describe_volumes(VolumeIds=[volume_id])["Volumes"]
        found: dict[str, Any] = volume
        return found

    def _of(self, namespace: str) -> dict[str, Any]:
        return {"Name": f"tag:{self.mark}", "Values": [f"{namespace}/*"]}

    def user_data(self, instance_id: str) -> str:
        answer = self.client.describe_instance_attribute(
            InstanceId=instance_id, Attribute="userData"
        )
        return base64.b64decode(answer["UserData"]["Value"]).decode()


def _end_of(instance: Instance) -> datetime:
    """The time in `StateTransitionReason`, whose format EC2 documents."""
    found = re.search(r"\((.*) GMT\)", instance["StateTransitionReason"])
    assert found is not None, instance["StateTransitionReason"]
    return datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)


def networks(group: dict[str, Any]) -> list[str]:
    """The networks for which a security group is open."""
    return [
        network["CidrIp"]
        for rule in group["IpPermissions"]
        for network in rule["IpRanges"]
    ]


def tags(resource: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in resource.get("Tags", [])}
