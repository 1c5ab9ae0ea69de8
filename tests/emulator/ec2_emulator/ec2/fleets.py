"""EC2 Fleet: refused until it is right, since moto's ignores prices and capacity."""

from moto.core.responses import ActionResult
from moto.ec2.responses._base_response import EC2BaseResponse

from ..errors import AwsError


class Fleets(EC2BaseResponse):
    def create_fleet(self) -> ActionResult:
        raise AwsError("NotImplementedByEmulator", "CreateFleet is not emulated", 501)

    def request_spot_fleet(self) -> ActionResult:
        raise AwsError(
            "NotImplementedByEmulator", "RequestSpotFleet is not emulated", 501
        )
