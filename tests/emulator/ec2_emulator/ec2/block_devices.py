"""The volumes of a launch: those of the image, with the request's changes."""

from typing import Any

from moto.ec2.models.block_device import BlockDeviceType
from moto.ec2.models.elastic_block_store import VolumeAttachment

from ..errors import AwsError
from .instance import EmulatedInstance

# gp3's included throughput in MiB/s (EBS user guide).
GP3_THROUGHPUT = 125

DEFAULT_TYPE = "gp2"
VOLUME_TYPES = ("standard", "gp2", "gp3", "io1", "io2", "st1", "sc1")
IOPS_TYPES = ("gp3", "io1", "io2")

Devices = dict[str, dict[str, Any]]


def resolve_devices(image: Any, mappings: list[dict[str, Any]] | None) -> Devices:
    """The EBS settings by device name, checked against their snapshots."""
    devices: Devices = {
        one["DeviceName"]: dict(one["Ebs"]) for one in image.block_device_mappings
    }
    for one in mappings or []:
        name = one.get("DeviceName")
        if not name:
            raise AwsError(
                "MissingParameter", "The request must contain the parameter deviceName"
            )
        if "NoDevice" in one:
            devices.pop(name, None)
        elif not one.get("VirtualName"):
            devices[name] = _changed(devices.get(name, {}), one.get("Ebs") or {})
    for ebs in devices.values():
        _check(image.ec2_backend, ebs)
    return devices


def attach_devices(
    instance: EmulatedInstance, devices: Devices, tags: dict[str, str]
) -> None:
    for name, ebs in devices.items():
        _attach(instance, name, ebs, tags)


def _changed(base: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    kind = wanted.get("VolumeType")
    if kind and kind != base.get("VolumeType"):
        base = {k: v for k, v in base.items() if k not in ("Iops", "Throughput")}
    return {**base, **{k: v for k, v in wanted.items() if v is not None}}


def _check(backend: Any, ebs: dict[str, Any]) -> None:
    _check_performance(ebs)
    size, snapshot_id = ebs.get("VolumeSize"), ebs.get("SnapshotId")
    if snapshot_id is None:
        if size is None:
            raise AwsError(
                "MissingParameter",
                "The request must contain the parameter size or snapshotId",
            )
        return
    snapshot = backend.snapshots.get(snapshot_id)
    if snapshot is None:
        raise AwsError(
            "InvalidSnapshot.NotFound", f"The snapshot '{snapshot_id}' does not exist."
        )
    if size is not None and size < snapshot.volume.size:
        raise AwsError(
            "InvalidBlockDeviceMapping",
            f"Volume of size {size}GB is smaller than snapshot '{snapshot_id}', "
            f"expect size >= {snapshot.volume.size}GB",
        )


def _check_performance(ebs: dict[str, Any]) -> None:
    """Checks the settings that a volume type takes (API reference, EbsBlockDevice)."""
    kind = ebs.get("VolumeType") or DEFAULT_TYPE
    if kind not in VOLUME_TYPES:
        raise AwsError(
            "InvalidParameterValue", f"Invalid value '{kind}' for volumeType."
        )
    for name, types in (("Iops", IOPS_TYPES), ("Throughput", ("gp3",))):
        if ebs.get(name) and kind not in types:
            raise AwsError(
                "InvalidParameterCombination",
                f"The parameter {name.lower()} is not supported for {kind} volumes.",
            )
    if kind in ("io1", "io2") and not ebs.get("Iops"):
        raise AwsError(
            "MissingParameter",
            f"The parameter iops must be specified for {kind} volumes.",
        )
    if ebs.get("KmsKeyId") and not ebs.get("Encrypted"):
        raise AwsError(
            "InvalidParameterDependency",
            "The parameter KmsKeyId requires the parameter Encrypted to be set.",
        )


def _attach(
    instance: EmulatedInstance, name: str, ebs: dict[str, Any], tags: dict[str, str]
) -> None:
    kind = ebs.get("VolumeType") or DEFAULT_TYPE
    volume = instance.ec2_backend.create_volume(
        size=ebs.get("VolumeSize"),
        zone_name=instance.availability_zone,
        snapshot_id=ebs.get("SnapshotId"),
        encrypted=ebs.get("Encrypted") or False,
        kms_key_id=ebs.get("KmsKeyId"),
        volume_type=kind,
        iops=ebs.get("Iops"),
        throughput=ebs.get("Throughput") or (GP3_THROUGHPUT if kind == "gp3" else None),
    )
    volume.attachment = VolumeAttachment(  # type: ignore[abstract]  # as moto does
        volume, instance, name, "attached"
    )
    instance.block_device_mapping[name] = BlockDeviceType(
        volume_id=volume.id,
        status=volume.status,
        size=volume.size,
        attach_time=instance.launch_time,
        delete_on_termination=ebs.get("DeleteOnTermination") or False,
    )
    volume.add_tags(tags)
