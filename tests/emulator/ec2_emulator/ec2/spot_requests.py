"""The operations on Spot Instance requests."""

from moto.core.responses import ActionResult
from moto.ec2.responses._base_response import EC2BaseResponse

from ..errors import AwsError
from .filters import select
from .paging import page
from .region import Region
from .spot import SpotRequest
from .wire import Answer

_FILTERS = {
    "instance-id": lambda one: one.instance.id,
    "launch.image-id": lambda one: one.instance.image_id,
    "launch.instance-type": lambda one: one.instance.instance_type,
    "launched-availability-zone": lambda one: one.instance.availability_zone,
    "product-description": lambda one: "Linux/UNIX",
    "spot-instance-request-id": lambda one: one.id,
    "state": lambda one: one.state,
    "status-code": lambda one: one.code,
    "type": lambda one: one.type,
}


class SpotRequests(EC2BaseResponse):
    here: Region

    def describe_spot_instance_requests(self) -> ActionResult:
        self.error_on_dryrun()
        parameters = dict(self.params)
        ids = parameters.get("SpotInstanceRequestIds") or []
        found = select(
            self._requests(ids),
            parameters.get("Filters") or [],
            _FILTERS,
            lambda one: self.ec2_backend.tags.get(one.id, {}),
        )
        shown, token = page(
            found, parameters, 5, 1000, None, lambda one: one.instance.sequence
        )
        documents = [one.as_document() for one in shown]
        return Answer({"SpotInstanceRequests": documents, "NextToken": token})

    def cancel_spot_instance_requests(self) -> ActionResult:
        requests = self._requests(self._get_param("SpotInstanceRequestIds", []))
        self.error_on_dryrun()
        for one in requests:
            one.cancel()
        return Answer(
            {
                "CancelledSpotInstanceRequests": [
                    {"SpotInstanceRequestId": one.id, "State": one.state}
                    for one in requests
                ]
            }
        )

    def request_spot_instances(self) -> ActionResult:
        raise AwsError(
            "NotImplementedByEmulator",
            "RequestSpotInstances is not emulated; RunInstances with "
            "InstanceMarketOptions launches spot instances",
            501,
        )

    def _requests(self, ids: list[str]) -> list[SpotRequest]:
        known: dict[str, SpotRequest] = self.ec2_backend.spot_instance_requests
        if not ids:
            return list(known.values())
        for one in ids:
            if not one.startswith("sir-"):
                raise AwsError(
                    "InvalidSpotInstanceRequestID.Malformed",
                    f"The spot instance request ID '{one}' is malformed",
                )
            if one not in known:
                raise AwsError(
                    "InvalidSpotInstanceRequestID.NotFound",
                    f"The spot instance request ID '{one}' does not exist",
                )
        return [known[one] for one in dict.fromkeys(ids)]
