"""Spot Instance requests. EC2 keeps one for each spot instance.

States and codes from "Spot request status", EC2 user guide.
"""

from datetime import datetime
from typing import Any

from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.utils import random_spot_request_id

_MESSAGES = {
    "fulfilled": "Your Spot request is fulfilled.",
    "marked-for-stop": "Your Spot Instance is marked for stopping.",
    "instance-stopped-by-user": "Your Spot Instance was stopped by a user.",
    "instance-terminated-by-user": "Your Spot Instance was terminated by a user.",
    "instance-terminated-no-capacity": "Your Spot Instance was terminated because "
    "there is no Spot capacity available that matches your request.",
    "request-canceled-and-instance-running": "Your Spot request is canceled, but "
    "your instance is still running.",
}


class SpotRequest(TaggedEC2Resource):
    """One request for one instance. `type` is "one-time" or "persistent"."""

    def __init__(self, region: Any, instance: Any, options: dict[str, Any]) -> None:
        self.ec2_backend = region.backend
        self._clock = region.clock
        self.id = random_spot_request_id()
        self.instance = instance
        self.type = options.get("SpotInstanceType") or "one-time"
        self.behavior = options.get("InstanceInterruptionBehavior") or "terminate"
        self.max_price = options.get("MaxPrice")
        self.created: datetime = self._clock.now()
        self.state = "active"
        self.code = "fulfilled"
        self.updated: datetime = self.created

    def follow(self, instance_state: str) -> None:
        """Sets the status that follows from the instance's new state."""
        if instance_state == "terminated":
            interrupted = self.code == "instance-terminated-no-capacity"
            if self.state != "cancelled":
                self.state = "closed"
            if not interrupted:
                self._become("instance-terminated-by-user")
        elif self.state == "cancelled":
            return
        elif instance_state == "pending":
            self.state = "active"
            self._become("fulfilled")
        elif instance_state == "stopping":
            self._become("marked-for-stop")
        elif instance_state == "stopped":
            self.state = "disabled"
            self._become("instance-stopped-by-user")

    def interrupt(self) -> None:
        """Sets the status of an interruption. EC2 does so at the notice, while the
        instance still runs."""
        if self.state != "cancelled":
            self.state = "closed"
        self._become("instance-terminated-no-capacity")

    def cancel(self) -> None:
        """Cancels only the request. Its instance continues to run."""
        if self.state == "active":
            self._become("request-canceled-and-instance-running")
        if self.state in ("active", "open", "disabled"):
            self.state = "cancelled"

    def as_document(self) -> dict[str, Any]:
        instance = self.instance
        document = {
            "SpotInstanceRequestId": self.id,
            "CreateTime": self.created,
            "InstanceId": instance.id,
            "InstanceInterruptionBehavior": self.behavior,
            "LaunchSpecification": {
                "ImageId": instance.image_id,
                "InstanceType": instance.instance_type,
                "KeyName": instance.key_name,
                "Placement": {"AvailabilityZone": instance.availability_zone},
                "SubnetId": instance.subnet_id,
            },
            "LaunchedAvailabilityZone": instance.availability_zone,
            "ProductDescription": "Linux/UNIX",
            "State": self.state,
            "Status": {
                "Code": self.code,
                "Message": _MESSAGES.get(self.code, ""),
                "UpdateTime": self.updated,
            },
            "Type": self.type,
            "Tags": [
                {"Key": key, "Value": value}
                for key, value in self.ec2_backend.tags.get(self.id, {}).items()
            ],
        }
        if self.max_price:
            document["SpotPrice"] = self.max_price
        return document

    def _become(self, code: str) -> None:
        self.code = code
        self.updated = self._clock.now()
