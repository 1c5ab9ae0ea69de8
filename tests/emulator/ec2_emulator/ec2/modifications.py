"""Larger volumes: "Request Amazon EBS volume modifications" (EBS user guide).

Comes before the class of the volumes, whose operation it checks and goes on to.
"""

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses.elastic_block_store import ElasticBlockStore

from ..errors import AwsError
from .region import Region


class Modifications(ElasticBlockStore):
    here: Region

    def modify_volume(self) -> ActionResult:
        """After one, the next has to wait for six hours."""
        volume: Any = self.ec2_backend.volumes.get(self._get_param("VolumeId"))
        size = self._get_param("Size")
        if volume is None or (size is not None and int(size) < volume.size):
            # Refused for that, and before anything else.
            result: ActionResult = super().modify_volume()
            return result
        if self.here.volume_state(volume) not in ("available", "in-use"):
            raise AwsError(
                "IncorrectState", f"{volume.id} is not 'available' or 'in-use'."
            )
        now = self.here.clock.seconds()
        until: float | None = getattr(volume, "modified_until", None)
        if until is not None and not self.here.clock.reached(until):
            raise AwsError(
                "VolumeModificationRateExceeded",
                "You've reached the maximum modification rate per volume limit. Wait at "
                "least 6 hours between modifications per EBS volume.",
            )
        result = super().modify_volume()
        cools_down = self.here.settings.modification_cool_down_seconds
        volume.modified_until = now + cools_down
        return result
