"""The account that is asked: its objects with the program's tag, and nothing else."""

import time
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from botocore.exceptions import ClientError

TAG = "gpu-workspaces-acceptance"
# The public parameter with an image for every architecture of the cheap types.
IMAGE = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
LIVE = ["pending", "running", "stopping", "stopped", "shutting-down"]

T = TypeVar("T")
Fleet = dict[str, Any]


class Account:
    """Makes objects with the tag, and deletes them. Each run has a value of the tag."""

    def __init__(self, session: Any, region: str, endpoint: str | None) -> None:
        self.ec2 = session.client("ec2", region_name=region, endpoint_url=endpoint)
        self.ssm = session.client("ssm", region_name=region, endpoint_url=endpoint)
        self.run = uuid.uuid4().hex[:12]
        self.endpoint: str = self.ec2.meta.endpoint_url
        self.template = f"{TAG}-{self.run}"

    def prepare(self) -> None:
        """Makes the launch template of all launches. It has no user data and no key."""
        image = self.ssm.get_parameter(Name=IMAGE)["Parameter"]["Value"]
        self.ec2.create_launch_template(
            LaunchTemplateName=self.template,
            LaunchTemplateData={
                "ImageId": image,
                "InstanceInitiatedShutdownBehavior": "terminate",
                "MetadataOptions": {"HttpTokens": "required"},
            },
            TagSpecifications=[self._tags("launch-template")],
        )

    def zones(self) -> list[str]:
        """The zones with a default subnet."""
        filters = [{"Name": "default-for-az", "Values": ["true"]}]
        subnets = self.ec2.describe_subnets(Filters=filters)["Subnets"]
        return sorted(subnet["AvailabilityZone"] for subnet in subnets)

    def fleet(self, token: str, places: list[tuple[str, str]], count: int = 1) -> Fleet:
        """Asks for spot instances of these types and zones."""
        overrides = [
            {"InstanceType": kind, "AvailabilityZone": zone} for kind, zone in places
        ]
        named = {"LaunchTemplateName": self.template, "Version": "1"}
        config = {"LaunchTemplateSpecification": named, "Overrides": overrides}
        answer: Fleet = self.ec2.create_fleet(
            ClientToken=token,
            Type="instant",
            LaunchTemplateConfigs=[config],
            TargetCapacitySpecification={
                "TotalTargetCapacity": count,
                "DefaultTargetCapacityType": "spot",
            },
            SpotOptions={"AllocationStrategy": "price-capacity-optimized"},
            TagSpecifications=[self._tags("instance"), self._tags("volume")],
        )
        return answer

    def instances(self, *states: str) -> list[dict[str, Any]]:
        """The instances with the tag, of any run."""
        filters = [{"Name": "tag-key", "Values": [TAG]}]
        if states:
            filters.append({"Name": "instance-state-name", "Values": list(states)})
        pages = self.ec2.get_paginator("describe_instances").paginate(Filters=filters)
        return [
            instance
            for page in pages
            for reservation in page["Reservations"]
            for instance in reservation["Instances"]
        ]

    def end(self, ids: list[str]) -> None:
        """Terminates instances with the tag, and waits for their end."""
        self.ec2.terminate_instances(InstanceIds=ids)

        def ended() -> bool:
            live = {one["InstanceId"] for one in self.instances(*LIVE)}
            return not live & set(ids)

        until("the instances to end", ended, 600)

    def clean(self) -> None:
        """Deletes everything with the tag, of this run and of earlier ones."""
        ids = [one["InstanceId"] for one in self.instances(*LIVE)]
        if ids:
            self.end(ids)
        filters = [{"Name": "tag-key", "Values": [TAG]}]
        found = self.ec2.describe_launch_templates(Filters=filters)
        for template in found["LaunchTemplates"]:
            self.ec2.delete_launch_template(
                LaunchTemplateId=template["LaunchTemplateId"]
            )
        # The image may keep the root volume.
        free = [*filters, {"Name": "status", "Values": ["available"]}]
        for volume in self.ec2.describe_volumes(Filters=free)["Volumes"]:
            self.ec2.delete_volume(VolumeId=volume["VolumeId"])

    def left(self) -> list[str]:
        """What has the tag and still exists."""
        filters = [{"Name": "tag-key", "Values": [TAG]}]
        templates = self.ec2.describe_launch_templates(Filters=filters)
        volumes = self.ec2.describe_volumes(Filters=filters)
        return [
            *(one["InstanceId"] for one in self.instances(*LIVE)),
            *(one["LaunchTemplateId"] for one in templates["LaunchTemplates"]),
            *(one["VolumeId"] for one in volumes["Volumes"]),
        ]

    def _tags(self, resource: str) -> dict[str, Any]:
        return {
            "ResourceType": resource,
            "Tags": [{"Key": TAG, "Value": self.run}],
        }


def until(what: str, holds: Callable[[], T], seconds: float) -> T:
    """Waits until it holds. Raises TimeoutError, which names what did not happen."""
    end = time.monotonic() + seconds
    while True:
        found = holds()
        if found:
            return found
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}")
        time.sleep(1)


def refusal(error: ClientError) -> dict[str, str]:
    """The code and the text of EC2's error."""
    said = error.response["Error"]
    return {"code": said["Code"], "message": said["Message"]}


def launched(fleet: Fleet) -> list[str]:
    """The ids of a fleet's instances."""
    return [id_ for share in fleet["Instances"] for id_ in share["InstanceIds"]]


def outcome(fleet: Fleet) -> dict[str, Any]:
    """The part of a fleet's answer that the questions are about."""
    errors = [
        {"code": one["ErrorCode"], "message": one.get("ErrorMessage", "")}
        for one in fleet["Errors"]
    ]
    return {"fleet": fleet["FleetId"], "instances": launched(fleet), "errors": errors}
