"""The whole EC2 API: this emulator's operations, and moto's for the rest."""

from typing import Any

from moto.ec2.responses import EC2Response

from ..errors import AwsError
from ..faults import Faults
from .created_images import CreatedImages
from .fleets import Fleets
from .groups import Groups
from .instances import Instances
from .modifications import Modifications
from .offerings import Offerings
from .region import Region
from .snapshots import Snapshots
from .spot_requests import SpotRequests
from .statuses import Statuses
from .tags import Tagging
from .templates import Templates
from .volumes import Volumes


class Ec2Endpoint(
    Instances,
    Statuses,
    SpotRequests,
    Fleets,
    Offerings,
    Tagging,
    Templates,
    Groups,
    CreatedImages,
    Snapshots,
    Modifications,
    Volumes,
    EC2Response,
):
    """`world` is the emulator. Each emulator binds a subclass of its own."""

    world: Any

    @property
    def here(self) -> Region:  # type: ignore[override]
        region: Region = self.world.region(self.current_account, self.region)
        return region

    @property
    def faults(self) -> Faults:  # type: ignore[override]
        faults: Faults = self.world.faults
        return faults

    def error_on_dryrun(self) -> None:
        if self._get_param("DryRun", False):
            raise AwsError(
                "DryRunOperation",
                "Request would have succeeded, but DryRun flag is set.",
                412,
            )
