"""Larger volumes: "Request Amazon EBS volume modifications" (EBS user guide).

This class is before that of the volumes in the endpoint's bases. It checks the request,
and then calls the operation of the volumes.
"""

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses.elastic_block_store import ElasticBlockStore

from ..errors import AwsError
from .region import Region


class Modifications(ElasticBlockStore):
    here: Region

    def modify_volume(self) -> ActionResult:
        """Changes a volume. The next change is possible six hours later."""
        volume: Any = self.ec2_backend.volumes.get(self._get_param("VolumeId"))
        size = self._get_param("Size")
        if volume is None or (size is not None and int(size) < volume.size):
            # EC2 checks this first. The operation of the volumes refuses the request.
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
