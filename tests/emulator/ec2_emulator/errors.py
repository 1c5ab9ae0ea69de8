"""AWS's error answers: codes, HTTP statuses, texts, and their formats."""

import json
from dataclasses import dataclass
from xml.sax.saxutils import escape


class AwsError(Exception):
    """An error answer with the service's own text.

    This is none of moto's exceptions, because moto answers those with HTTP 400. EC2's
    status tells clients which errors they should retry.
    """

    def __init__(self, code: str, message: str, status: int | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status if status is not None else default_status(code)


@dataclass(frozen=True)
class KnownError:
    status: int
    message: str


# EC2's statuses and texts. They are the defaults for a fault that names only a code.
KNOWN_ERRORS = {
    "InsufficientInstanceCapacity": KnownError(
        500,
        "We currently do not have sufficient {InstanceType} capacity in the Availability "
        "Zone you requested ({AvailabilityZone}). Our system will be working on "
        "provisioning additional capacity. You can currently get {InstanceType} capacity "
        "by not specifying an Availability Zone in your request or choosing {Others}.",
    ),
    # kubernetes-sigs/karpenter#2243: the type is sold in the zone, but not as spot.
    "InvalidFleetConfiguration": KnownError(
        400,
        "Your requested instance type ((null)) is not supported in your requested "
        "Availability Zone ({AvailabilityZone}). Please retry your request by not "
        "specifying an Availability Zone or choosing {Others}.",
    ),
    "MaxFleetCountExceeded": KnownError(
        400,
        "You have reached your quota for maximum Fleet Requests for this account.",
    ),
    "Client.InternalError": KnownError(
        400, "Client.InternalError: Client error on launch"
    ),
    "Client.VolumeLimitExceeded": KnownError(
        400, "Client.VolumeLimitExceeded: Volume limit exceeded"
    ),
    "Server.InternalError": KnownError(
        400, "Server.InternalError: Internal error on launch"
    ),
    "InsufficientHostCapacity": KnownError(
        500, "There is not enough capacity to fulfill your Dedicated Host request."
    ),
    "InsufficientReservedInstanceCapacity": KnownError(
        500, "Insufficient reserved instance capacity."
    ),
    "InsufficientFreeAddressesInSubnet": KnownError(
        400,
        "There are not enough free addresses in the subnet to satisfy the requested "
        "number of instances.",
    ),
    "UnfulfillableCapacity": KnownError(
        500, "Unable to fulfill capacity due to your request configuration."
    ),
    "ReservationCapacityExceeded": KnownError(
        400, "The requested reservation does not have sufficient capacity."
    ),
    "MaxSpotInstanceCountExceeded": KnownError(400, "Max spot instance count exceeded"),
    "VcpuLimitExceeded": KnownError(
        400,
        "You have requested more vCPU capacity than your current vCPU limit of 0 "
        "allows for the instance bucket that the specified instance type belongs to. "
        "Please visit http://aws.amazon.com/contact-us/ec2-request to request an "
        "adjustment to this limit.",
    ),
    "InstanceLimitExceeded": KnownError(
        400,
        "You have requested more instances than your current instance limit allows "
        "for the specified instance type.",
    ),
    "RequestLimitExceeded": KnownError(503, "Request limit exceeded."),
    "UnauthorizedOperation": KnownError(
        403, "You are not authorized to perform this operation."
    ),
    "AuthFailure": KnownError(
        401, "AWS was not able to validate the provided access credentials"
    ),
    "ExpiredToken": KnownError(
        403, "The security token included in the request is expired"
    ),
    "RequestExpired": KnownError(400, "Request has expired."),
    "OptInRequired": KnownError(
        401,
        "You are not subscribed to this service. Please go to "
        "http://aws.amazon.com to subscribe.",
    ),
    "InternalError": KnownError(500, "An internal error has occurred"),
    "ServerInternal": KnownError(500, "An internal error has occurred"),
    "Unavailable": KnownError(
        503, "The service is unavailable. Please try again shortly."
    ),
    "ServiceUnavailable": KnownError(
        503, "The service is unavailable. Please try again shortly."
    ),
}

# Refusals of the placement. EC2 gives them only if the request is otherwise valid.
PLACEMENT_CODES = frozenset(
    {
        "InsufficientInstanceCapacity",
        "InsufficientHostCapacity",
        "InsufficientReservedInstanceCapacity",
        "InsufficientFreeAddressesInSubnet",
        "UnfulfillableCapacity",
        "ReservationCapacityExceeded",
        "MaxSpotInstanceCountExceeded",
        "VcpuLimitExceeded",
        "InstanceLimitExceeded",
        "Unsupported",
        "SpotMaxPriceTooLow",
    }
)


def default_status(code: str) -> int:
    known = KNOWN_ERRORS.get(code)
    return known.status if known else 400


def default_message(code: str) -> str:
    known = KNOWN_ERRORS.get(code)
    return known.message if known else f"{code} (injected)"


@dataclass(frozen=True)
class Body:
    content_type: str
    content: bytes


def error_body(error: AwsError, protocol: str, request_id: str) -> Body:
    """The error in the form that clients of this protocol parse."""
    if protocol == "json":
        document = json.dumps({"__type": error.code, "message": error.message})
        return Body("application/x-amz-json-1.0", document.encode())
    code, message = escape(error.code), escape(error.message)
    if protocol == "ec2":
        xml = (
            f"<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message>"
            f"</Error></Errors><RequestID>{request_id}</RequestID></Response>"
        )
    else:
        kind = "Sender" if error.status < 500 else "Receiver"
        xml = (
            f"<ErrorResponse><Error><Type>{kind}</Type><Code>{code}</Code>"
            f"<Message>{message}</Message></Error>"
            f"<RequestId>{request_id}</RequestId></ErrorResponse>"
        )
    return Body(
        "text/xml;charset=UTF-8",
        b'<?xml version="1.0" encoding="UTF-8"?>' + xml.encode(),
    )
