"""Larger volumes: "ModifyVolume" (API reference).

EC2 takes four modifications of a volume within 24 hours. Each one completes at once here.

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
        """Changes a volume, unless it was changed too often."""
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
        settings, clock = self.here.settings, self.here.clock
        times: list[float] = getattr(volume, "modified_at", [])
        window = settings.modification_window_seconds
        recent = [one for one in times if not clock.reached(one + window)]
        if len(recent) >= settings.modifications_in_window:
            raise AwsError(
                "VolumeModificationRateExceeded",
                "You've reached the maximum modification rate per volume limit. Wait at "
                "least 6 hours between modifications per EBS volume.",
            )
        result = super().modify_volume()
        volume.modified_at = [*recent, clock.seconds()]
        return result
