"""Volumes: created once for a token, attached only within their zone."""

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses.elastic_block_store import ElasticBlockStore

from ..errors import AwsError
from .block_devices import GP3_THROUGHPUT
from .region import Region


class Volumes(ElasticBlockStore):
    here: Region

    def create_volume(self) -> ActionResult:
        parameters: dict[str, Any] = dict(self.params)
        token = parameters.get("ClientToken")
        earlier = self.here.tokens.find("CreateVolume", token, parameters)
        if earlier is not None:
            return ActionResult(earlier)
        result: ActionResult = super().create_volume()
        volume: Any = result.result
        if volume.volume_type == "gp3" and not volume.throughput:
            volume.throughput = GP3_THROUGHPUT
        self.here.tokens.bind("CreateVolume", token, parameters, volume)
        return result

    def attach_volume(self) -> ActionResult:
        """An EBS volume lives in one Availability Zone and serves one instance."""
        (instance,) = self.here.find([self._get_param("InstanceId")])
        volume = self.ec2_backend.get_volume(self._get_param("VolumeId"))
        if instance.state not in ("pending", "running", "stopping", "stopped"):
            raise AwsError(
                "IncorrectState",
                f"Instance '{instance.id}' is not in a state to attach a volume.",
            )
        if volume.zone.name != instance.availability_zone:
            raise AwsError(
                "InvalidVolume.ZoneMismatch",
                f"The volume '{volume.id}' is not in the same availability zone as "
                f"instance '{instance.id}'",
            )
        if volume.attachment is not None:
            raise AwsError(
                "VolumeInUse", f"{volume.id} is already attached to an instance"
            )
        device = self._get_param("Device")
        if device in instance.block_device_mapping:
            raise AwsError(
                "InvalidParameterValue",
                f"Invalid value '{device}' for unixDevice. Attachment point {device} "
                "is already in use",
            )
        result: ActionResult = super().attach_volume()
        return result
