"""EC2 itself, asked by boto3: the witness that is none of ours."""

import base64
from typing import Any

import boto3

Instance = dict[str, Any]

POOL = "gpu.platform.acme.io/pool"
CLUSTER = "gpu.platform.acme.io/cluster"
LIVE = ("pending", "running", "stopping", "stopped")


class Ec2:
    def __init__(self, region: str) -> None:
        self.region = region
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
        """The instances that EC2 bills for a namespace's pools."""
        return [
            instance
            for instance in self.instances(
                {"Name": f"tag:{POOL}", "Values": [f"{namespace}/*"]}
            )
            if instance["State"]["Name"] in LIVE
        ]

    def instance(self, instance_id: str) -> Instance:
        (found,) = self.instances({"Name": "instance-id", "Values": [instance_id]})
        return found

    def groups(self, namespace: str) -> list[dict[str, Any]]:
        groups: list[dict[str, Any]] = self.client.describe_security_groups(
            Filters=[{"Name": f"tag:{POOL}", "Values": [f"{namespace}/*"]}]
        )["SecurityGroups"]
        return groups

    def volumes(self, namespace: str) -> list[dict[str, Any]]:
        volumes: list[dict[str, Any]] = self.client.describe_volumes(
            Filters=[{"Name": f"tag:{POOL}", "Values": [f"{namespace}/*"]}]
        )["Volumes"]
        return volumes

    def user_data(self, instance_id: str) -> str:
        answer = self.client.describe_instance_attribute(
            InstanceId=instance_id, Attribute="userData"
        )
        return base64.b64decode(answer["UserData"]["Value"]).decode()


def tags(resource: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in resource.get("Tags", [])}
