"""Snapshots: the content of a volume at the request. Usable once they are completed.

"Create Amazon EBS snapshots" (EBS user guide): a snapshot is `pending` until it has the
whole volume. It does not have data that is written meanwhile. "CreateVolume" (API
reference) refuses a snapshot that is not completed, and a size below the snapshot's.

This class is before that of the volumes in the endpoint's bases. It checks requests,
and then calls the operations of the volumes.
"""

from collections.abc import Callable
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses.elastic_block_store import ElasticBlockStore

from ..errors import AwsError
from .filters import Values, flag, select
from .instance_view import tag_list
from .paging import page
from .region import Region
from .wire import Answer


class Snapshots(ElasticBlockStore):
    here: Region

    def create_snapshot(self) -> ActionResult:
        volume_id = self._get_param("VolumeId")
        volume = self.ec2_backend.volumes.get(volume_id)
        if volume is None:
            raise AwsError(
                "InvalidVolume.NotFound", f"The volume '{volume_id}' does not exist."
            )
        self.error_on_dryrun()
        if self.here.volume_state(volume) not in ("available", "in-use"):
            raise AwsError("IncorrectState", f"{volume_id} is not 'available'.")
        snapshot: Any = super().create_snapshot().result
        # The volume may grow or be deleted before the snapshot is used.
        snapshot.gib = volume.size
        seconds = self.here.settings.snapshot_seconds
        snapshot.completed_at = self.here.clock.seconds() + seconds
        return Answer(self._seen(snapshot))

    def describe_snapshots(self) -> ActionResult:
        parameters = dict(self.params)
        self.error_on_dryrun()
        ids = parameters.get("SnapshotIds") or []
        snapshots = [self._snapshot(one) for one in dict.fromkeys(ids)]
        owners = [self._owner(one) for one in parameters.get("OwnerIds") or []]
        everything = snapshots or self.ec2_backend.snapshots.values()
        owned = [one for one in everything if not owners or one.owner_id in owners]
        found = select(
            owned,
            parameters.get("Filters") or [],
            SNAPSHOT_FILTERS | {"status": self._state},
            lambda snapshot: self.ec2_backend.tags.get(snapshot.id, {}),
        )
        order = {one: number for number, one in enumerate(self.ec2_backend.snapshots)}
        shown, token = page(found, parameters, 5, 1000, None, lambda s: order[s.id])
        views = [self._seen(snapshot) for snapshot in shown]
        return Answer({"Snapshots": views, "NextToken": token})

    def delete_snapshot(self) -> ActionResult:
        self._snapshot(self._get_param("SnapshotId"))
        self.error_on_dryrun()
        result: ActionResult = super().delete_snapshot()
        return result

    def create_volume(self) -> ActionResult:
        snapshot_id = self._get_param("SnapshotId")
        token = self._get_param("ClientToken")
        parameters: dict[str, Any] = dict(self.params)
        # A known token gets its first answer again, also if the snapshot is deleted.
        known = self.here.tokens.find("CreateVolume", token, parameters)
        if not snapshot_id or known is not None:
            result: ActionResult = super().create_volume()
            return result
        snapshot = self._snapshot(snapshot_id)
        state = self._state(snapshot)
        if state != "completed":
            raise AwsError("IncorrectState", f"Snapshot is in invalid state - {state}")
        gib = _gib(snapshot)
        size = self._get_param("Size")
        if size is not None and int(size) < gib:
            raise AwsError(
                "InvalidParameterValue",
                f"Volume of {size}GiB is too small; minimum is {gib}GiB.",
            )
        made: Any = super().create_volume().result
        if size is None:
            self.ec2_backend.volumes[made["VolumeId"]].size = gib
            made["Size"] = gib
        return Answer(made)

    def _snapshot(self, snapshot_id: str | None) -> Any:
        if not snapshot_id or not snapshot_id.startswith("snap-"):
            raise AwsError(
                "InvalidParameterValue",
                f"Value ({snapshot_id}) for parameter snapshotId is invalid. "
                "Expected: 'snap-...'.",
            )
        snapshot = self.ec2_backend.snapshots.get(snapshot_id)
        if snapshot is None:
            raise AwsError(
                "InvalidSnapshot.NotFound",
                f"The snapshot '{snapshot_id}' does not exist.",
            )
        return snapshot

    def _owner(self, name: str) -> str:
        return self.here.account if name == "self" else name

    def _state(self, snapshot: Any) -> str:
        due = getattr(snapshot, "completed_at", None)
        is_done = due is None or self.here.clock.reached(due)
        return "completed" if is_done else "pending"

    def _seen(self, snapshot: Any) -> dict[str, Any]:
        state = self._state(snapshot)
        return {
            "Description": snapshot.description,
            "Encrypted": snapshot.encrypted,
            "OwnerId": snapshot.owner_id,
            "Progress": "100%" if state == "completed" else "0%",
            "SnapshotId": snapshot.id,
            "StartTime": snapshot.start_time,
            "State": state,
            "StorageTier": snapshot.storage_tier,
            "Tags": tag_list(self.ec2_backend, snapshot.id),
            "VolumeId": snapshot.volume.id,
            "VolumeSize": _gib(snapshot),
        }


def _gib(snapshot: Any) -> int:
    size: int = getattr(snapshot, "gib", snapshot.volume.size)
    return size


# "DescribeSnapshots" (API reference). `status` is not here: it needs the clock.
SNAPSHOT_FILTERS: dict[str, Callable[[Any], Values]] = {
    "description": lambda s: s.description,
    "encrypted": lambda s: flag(s.encrypted),
    "owner-id": lambda s: s.owner_id,
    "snapshot-id": lambda s: s.id,
    "storage-tier": lambda s: s.storage_tier,
    "volume-id": lambda s: s.volume.id,
    "volume-size": lambda s: str(_gib(s)),
}
