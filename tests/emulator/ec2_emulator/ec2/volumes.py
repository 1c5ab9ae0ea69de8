"""Volumes: one for each token, attached only within their zone.

"Amazon EBS volume lifecycle" (EBS user guide): with time, a volume is creating,
available, in-use. Its attachment is attaching, attached, detaching.
"""

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses.elastic_block_store import ElasticBlockStore

from ..errors import AwsError
from ..faults import Faults
from .block_devices import GP3_THROUGHPUT
from .filters import select
from .paging import page
from .region import Region
from .volume_view import VOLUME_FILTERS, describe_attachment, describe_volume
from .wire import Answer

# crossplane-contrib/provider-aws#1858.
DELETED = (
    "The client token you have provided is associated with a resource that is already "
    "deleted. Please use a different client token."
)


class Volumes(ElasticBlockStore):
    here: Region
    faults: Faults

    def create_volume(self) -> ActionResult:
        parameters: dict[str, Any] = dict(self.params)
        token = parameters.get("ClientToken")
        earlier = self.here.tokens.find("CreateVolume", token, parameters)
        if earlier is not None:
            if earlier.id not in self.ec2_backend.volumes:
                raise AwsError("IdempotentParameterMismatch", DELETED)
            return self._shown(earlier)
        self._check_zone(parameters.get("AvailabilityZone"))
        volume: Any = super().create_volume().result
        if volume.volume_type == "gp3" and not volume.throughput:
            volume.throughput = GP3_THROUGHPUT
        if volume.snapshot_id:
            self.here.content_copied(volume.snapshot_id, volume.id)
        self.here.volume_created(volume)
        self.here.tokens.bind("CreateVolume", token, parameters, volume)
        zone = {"AvailabilityZone": volume.zone.name}
        if self.faults.take_at_birth("CreateVolume", parameters, zone):
            self.here.take_back(volume)
        return self._shown(volume)

    def describe_volumes(self) -> ActionResult:
        parameters = dict(self.params)
        self.error_on_dryrun()
        ids = parameters.get("VolumeIds") or []
        volumes = [self._volume(one) for one in dict.fromkeys(ids)]
        found = select(
            volumes or self.ec2_backend.volumes.values(),
            parameters.get("Filters") or [],
            VOLUME_FILTERS | {"status": self.here.volume_state},
            lambda volume: self.ec2_backend.tags.get(volume.id, {}),
        )
        order = {one: number for number, one in enumerate(self.ec2_backend.volumes)}
        shown, token = page(found, parameters, 5, 1000, None, lambda v: order[v.id])
        views = [self._view(volume) for volume in shown]
        return Answer({"Volumes": views, "NextToken": token})

    def delete_volume(self) -> ActionResult:
        volume = self._volume(self._get_param("VolumeId"))
        self.error_on_dryrun()
        result: ActionResult = super().delete_volume()
        self.here.volume_deleted(volume.id)
        return result

    def create_snapshot(self) -> ActionResult:
        volume = self._volume(self._get_param("VolumeId"))
        result: ActionResult = super().create_snapshot()
        made: Any = result.result
        self.here.content_copied(volume.id, made.id)
        return result

    def delete_snapshot(self) -> ActionResult:
        result: ActionResult = super().delete_snapshot()
        self.here.volume_deleted(self._get_param("SnapshotId"))
        return result

    def modify_volume(self) -> ActionResult:
        volume = self._volume(self._get_param("VolumeId"))
        size = self._get_param("Size")
        if size is not None and int(size) < volume.size:
            raise AwsError(
                "InvalidParameterValue",
                "New size cannot be smaller than existing size",
            )
        result: ActionResult = super().modify_volume()
        self.here.volume_grown(volume)
        return result

    def attach_volume(self) -> ActionResult:
        """An EBS volume belongs to one Availability Zone, and serves one instance."""
        (instance,) = self.here.find([self._get_param("InstanceId")])
        volume = self._volume(self._get_param("VolumeId"))
        device = self._get_param("Device")
        # "Attach an Amazon EBS volume to an Amazon EC2 instance": the instance must be
        # running or stopped.
        if instance.state not in ("running", "stopped"):
            raise AwsError(
                "IncorrectState", f"Instance '{instance.id}' is not 'running'."
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
        if self.here.volume_state(volume) != "available":
            raise AwsError("IncorrectState", f"{volume.id} is not 'available'.")
        if device in instance.block_device_mapping:
            raise AwsError(
                "InvalidParameterValue",
                f"Invalid value '{device}' for unixDevice. Attachment point {device} "
                "is already in use",
            )
        super().attach_volume()
        self.here.attach(volume)
        return Answer(describe_attachment(volume.attachment))

    def detach_volume(self) -> ActionResult:
        volume = self._volume(self._get_param("VolumeId"))
        self.error_on_dryrun()
        attachment = volume.attachment
        if attachment is None or attachment.status == "detaching":
            state = "available" if attachment is None else "detaching"
            raise AwsError(
                "IncorrectState", f"Volume '{volume.id}' is in the '{state}' state."
            )
        instance = attachment.instance
        named = self._get_param("InstanceId") or instance.id
        device = self._get_param("Device") or attachment.device
        if (named, device) != (instance.id, attachment.device):
            raise AwsError(
                "InvalidAttachment.NotFound",
                f"The volume '{volume.id}' is not attached to instance '{named}' as "
                f"device '{device}'",
            )
        if device == instance.root_device_name and instance.state != "stopped":
            raise AwsError(
                "OperationNotPermitted",
                f"Unable to detach root volume '{volume.id}' from instance "
                f"'{instance.id}'",
            )
        self.here.detach(volume)
        return Answer(describe_attachment(attachment))

    def _volume(self, volume_id: str | None) -> Any:
        if not volume_id or not volume_id.startswith("vol-"):
            raise AwsError(
                "InvalidParameterValue",
                f"Value ({volume_id}) for parameter volumeId is invalid. "
                "Expected: 'vol-...'.",
            )
        volume = self.ec2_backend.volumes.get(volume_id)
        if volume is None:
            raise AwsError(
                "InvalidVolume.NotFound", f"The volume '{volume_id}' does not exist."
            )
        return volume

    def _check_zone(self, zone: str | None) -> None:
        if not zone:
            raise AwsError(
                "MissingParameter",
                "The request must contain the parameter AvailabilityZone",
            )
        if self.ec2_backend.get_zone_by_name(zone) is None:
            raise AwsError("InvalidZone.NotFound", f"The zone '{zone}' does not exist.")

    def _shown(self, volume: Any) -> ActionResult:
        return Answer(self._view(volume))

    def _view(self, volume: Any) -> dict[str, Any]:
        return describe_volume(volume, self.here.volume_state(volume))
