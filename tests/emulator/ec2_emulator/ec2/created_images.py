"""Images that are made of instances, and images that their owner deprecated.

"CreateImage" (API reference): an image is `pending` until its snapshots are completed, its
name is unique in the account and region, and image and snapshots may get tags. The shutdown
of the instance is not emulated.

"Deprecate an Amazon EC2 AMI" (user guide): DescribeImages leaves a deprecated image out,
unless its id is named or IncludeDeprecated is set. It can still be launched. Here anybody
may deprecate an image, and its owner does not see more than others.
"""

from datetime import UTC, datetime
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses.amis import AmisResponse

from ..errors import AwsError
from .region import Region
from .wire import Answer


class CreatedImages(AmisResponse):
    here: Region

    def create_image(self) -> ActionResult:
        name = self._get_param("Name")
        self.error_on_dryrun()
        for known in self.ec2_backend.amis.values():
            if known.name == name and known.owner_id == self.here.account:
                raise AwsError(
                    "InvalidAMIName.Duplicate",
                    f"AMI name {name} is already in use by AMI {known.id}",
                )
        specifications = self._get_param("TagSpecifications", [])
        tags = {
            one["ResourceType"]: {tag["Key"]: tag["Value"] for tag in one["Tags"]}
            for one in specifications
        }
        image: Any = self.ec2_backend.create_image(
            self._get_param("InstanceId"),
            name,
            self._get_param("Description", ""),
            tag_specifications=[
                one for one in specifications if one["ResourceType"] == "image"
            ],
        )
        snapshot = image.ebs_snapshot
        self.ec2_backend.tags.setdefault(snapshot.id, {}).update(
            tags.get("snapshot", {})
        )
        due = self.here.clock.seconds() + self.here.settings.snapshot_seconds
        image.completed_at = snapshot.completed_at = due
        image.state = "pending"
        return Answer({"ImageId": image.id})

    def describe_images(self) -> ActionResult:
        for image in self.ec2_backend.amis.values():
            due = getattr(image, "completed_at", None)
            if due is not None and self.here.clock.reached(due):
                image.state = "available"
        result: ActionResult = super().describe_images()
        if not self._get_param("ImageIds") and not self._get_param("IncludeDeprecated"):
            document: Any = result.result
            images = document["Images"]
            document["Images"] = [one for one in images if not self._is_deprecated(one)]
        return result

    def enable_image_deprecation(self) -> ActionResult:
        image = self._image()
        self.error_on_dryrun()
        at: datetime = self._get_param("DeprecateAt")
        image.deprecated_at = at if at.tzinfo else at.replace(tzinfo=UTC)
        image.deprecation_time = f"{at:%Y-%m-%dT%H:%M:%S}.000Z"
        return Answer({"Return": True})

    def disable_image_deprecation(self) -> ActionResult:
        image = self._image()
        self.error_on_dryrun()
        image.deprecated_at = image.deprecation_time = None
        return Answer({"Return": True})

    def _image(self) -> Any:
        image = self.ec2_backend.amis.get(self._get_param("ImageId"))
        if image is None:
            raise AwsError(
                "InvalidAMIID.NotFound",
                f"The image id '[{self._get_param('ImageId')}]' does not exist",
            )
        return image

    def _is_deprecated(self, image: Any) -> bool:
        at: datetime | None = getattr(image, "deprecated_at", None)
        return at is not None and self.here.clock.reached(at.timestamp())
