"""A volume and its attachment as DescribeVolumes shows and filters them."""

from collections.abc import Callable
from typing import Any

from .filters import Values, flag
from .instance_view import tag_list

Getter = Callable[[Any], Values]


def describe_volume(volume: Any, state: str) -> dict[str, Any]:
    """The fields of EC2's answer for a volume, as far as the emulator has them."""
    attachment = volume.attachment
    return {
        "Attachments": [describe_attachment(attachment)] if attachment else [],
        "AvailabilityZone": volume.zone.name,
        "CreateTime": volume.create_time,
        "Encrypted": volume.encrypted,
        "Iops": volume.iops,
        "KmsKeyId": volume.kms_key_id if volume.encrypted else None,
        "MultiAttachEnabled": bool(volume.multi_attach_enabled),
        "Size": volume.size,
        "SnapshotId": volume.snapshot_id or "",
        "State": state,
        "Tags": tag_list(volume.ec2_backend, volume.id),
        "Throughput": volume.throughput,
        "VolumeId": volume.id,
        "VolumeType": volume.volume_type,
    }


def describe_attachment(attachment: Any) -> dict[str, Any]:
    return {
        "AttachTime": attachment.attach_time,
        "DeleteOnTermination": _deleted_with_instance(attachment),
        "Device": attachment.device,
        "InstanceId": attachment.instance.id,
        "State": attachment.status,
        "VolumeId": attachment.volume.id,
    }


def _deleted_with_instance(attachment: Any) -> bool:
    block = attachment.instance.block_device_mapping.get(attachment.device)
    return bool(block and block.delete_on_termination)


def _attached(read: Callable[[Any], str]) -> Getter:
    return lambda volume: read(volume.attachment) if volume.attachment else None


def _time(value: Any) -> str:
    text: str = value.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return text


# "DescribeVolumes" (API reference). `status` is not here: it needs the clock.
VOLUME_FILTERS: dict[str, Getter] = {
    "attachment.attach-time": _attached(lambda a: _time(a.attach_time)),
    "attachment.delete-on-termination": _attached(
        lambda a: flag(_deleted_with_instance(a))
    ),
    "attachment.device": _attached(lambda a: a.device),
    "attachment.instance-id": _attached(lambda a: a.instance.id),
    "attachment.status": _attached(lambda a: a.status),
    "availability-zone": lambda v: v.zone.name,
    "create-time": lambda v: _time(v.create_time),
    "encrypted": lambda v: flag(v.encrypted),
    "multi-attach-enabled": lambda v: flag(v.multi_attach_enabled),
    "size": lambda v: str(v.size),
    "snapshot-id": lambda v: v.snapshot_id,
    "volume-id": lambda v: v.id,
    "volume-type": lambda v: v.volume_type,
}
