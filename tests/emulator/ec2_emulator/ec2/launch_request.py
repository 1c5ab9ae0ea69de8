"""Checks a RunInstances request as EC2 checks it.

The checks change no state. A request that passes can be placed and built.
"""

import base64
from dataclasses import dataclass
from typing import Any

from moto.core.types import Base64EncodedString
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.iam.models import iam_backends
from moto.ssm.models import ssm_backends

from ..errors import AwsError
from .block_devices import Devices, resolve_devices
from .offerings import types_in
from .tags import launch_tags

USER_DATA_LIMIT = 16384
DEFAULT_TYPE = "m1.small"


@dataclass(frozen=True)
class LaunchRequest:
    """A valid request, with names resolved to moto's objects."""

    parameters: dict[str, Any]
    image: Any
    instance_type: str
    minimum: int
    maximum: int
    zone: str | None
    subnet: Any
    interfaces: list[dict[str, Any]]
    devices: Devices
    groups: list[Any]
    market: dict[str, Any] | None
    tags: dict[str, dict[str, str]]
    profile: Any
    user_data: Base64EncodedString | None

    @property
    def is_spot(self) -> bool:
        return self.market is not None

    @property
    def facts(self) -> dict[str, str]:
        """The facts that a fault can match."""
        return {
            "InstanceType": self.instance_type,
            "AvailabilityZone": self.zone or "",
            "MarketType": "spot" if self.is_spot else "on-demand",
            "Region": self.image.ec2_backend.region_name,
        }


def check_request(backend: Any, parameters: dict[str, Any]) -> LaunchRequest:
    """The request, or EC2's error for the first thing wrong with it."""
    minimum, maximum = _counts(parameters)
    image = _image(backend, parameters.get("ImageId"))
    instance_type = parameters.get("InstanceType") or DEFAULT_TYPE
    _check_type(backend.region_name, instance_type, image)
    interfaces = parameters.get("NetworkInterfaces") or []
    subnet = _subnet(backend, parameters, interfaces)
    market = _market(parameters.get("InstanceMarketOptions"))
    _check_key(backend, parameters.get("KeyName"))
    _check_metadata(parameters.get("MetadataOptions") or {})
    _check_reservations(parameters.get("CapacityReservationSpecification") or {})
    return LaunchRequest(
        parameters=parameters,
        image=image,
        instance_type=instance_type,
        minimum=minimum,
        maximum=maximum,
        zone=_zone(backend, parameters, subnet),
        subnet=subnet,
        interfaces=interfaces,
        devices=resolve_devices(image, parameters.get("BlockDeviceMappings")),
        groups=_groups(backend, parameters, interfaces, subnet),
        market=market,
        tags=launch_tags(parameters, spot=market is not None),
        profile=_profile(backend, parameters.get("IamInstanceProfile")),
        user_data=_user_data(parameters.get("UserData")),
    )


def _invalid(message: str) -> AwsError:
    return AwsError("InvalidParameterValue", message)


def _counts(parameters: dict[str, Any]) -> tuple[int, int]:
    for name in ("MinCount", "MaxCount"):
        if parameters.get(name) is None:
            raise AwsError(
                "MissingParameter", f"The request must contain the parameter {name}"
            )
    minimum, maximum = int(parameters["MinCount"]), int(parameters["MaxCount"])
    if minimum < 1:
        raise _invalid(f"Value ({minimum}) for parameter minCount is invalid.")
    if maximum < minimum:
        raise _invalid(
            f"Value ({minimum}) for parameter minCount is invalid. "
            f"It must not be greater than maxCount ({maximum})."
        )
    return minimum, maximum


def _image(backend: Any, image_id: str | None) -> Any:
    if not image_id:
        raise AwsError(
            "MissingParameter", "The request must contain the parameter ImageId"
        )
    if image_id.startswith("resolve:ssm:"):
        image_id = _resolve(backend, image_id.removeprefix("resolve:ssm:"))
    body = image_id.removeprefix("ami-")
    if body == image_id or not all(c in "0123456789abcdef" for c in body):
        raise AwsError(
            "InvalidAMIID.Malformed", f'Invalid id: "{image_id}" (expecting "ami-...")'
        )
    image = backend.amis.get(image_id)
    if image is None:
        raise AwsError(
            "InvalidAMIID.NotFound", f"The image id '[{image_id}]' does not exist"
        )
    return image


def _resolve(backend: Any, parameter: str) -> str:
    ssm = ssm_backends[backend.account_id][backend.region_name]
    versions = ssm._parameters[parameter] if parameter in ssm._parameters else []
    if not versions:
        raise _invalid(f"Systems Manager parameter '{parameter}' could not be resolved")
    return str(versions[-1].value)


def _check_type(region: str, instance_type: str, image: Any) -> None:
    if instance_type not in INSTANCE_TYPES:
        raise _invalid(f"Invalid value '{instance_type}' for InstanceType.")
    if instance_type not in types_in(region):
        raise AwsError(
            "Unsupported",
            "The requested configuration is currently not supported. Please check "
            "the documentation for supported configurations.",
        )
    built_for = INSTANCE_TYPES[instance_type]["ProcessorInfo"]["SupportedArchitectures"]
    if image.architecture not in built_for:
        raise _invalid(
            f"The architecture '{','.join(built_for)}' of the specified instance type "
            f"does not match the architecture '{image.architecture}' of the specified "
            "AMI. Specify an instance type and an AMI that have matching "
            "architectures, and try again."
        )


def _subnet(
    backend: Any, parameters: dict[str, Any], interfaces: list[dict[str, Any]]
) -> Any:
    subnet_id = parameters.get("SubnetId")
    if interfaces and subnet_id:
        raise AwsError(
            "InvalidParameterCombination",
            "Network interfaces and an instance-level subnet ID may not be specified "
            "on the same request",
        )
    named = [nic["SubnetId"] for nic in interfaces if nic.get("SubnetId")]
    wanted = subnet_id or (named[0] if named else None)
    if wanted is None:
        return None
    for subnets in backend.subnets.values():
        if wanted in subnets:
            return subnets[wanted]
    raise AwsError(
        "InvalidSubnetID.NotFound", f"The subnet ID '{wanted}' does not exist"
    )


def _zone(backend: Any, parameters: dict[str, Any], subnet: Any) -> str | None:
    if subnet is not None:
        return str(subnet.availability_zone)
    zone = (parameters.get("Placement") or {}).get("AvailabilityZone")
    # terraform sends an empty zone if the user names none, and EC2 accepts that.
    if not zone:
        return None
    if zone not in {one.name for one in backend.describe_availability_zones()}:
        raise _invalid(f"Invalid availability zone: [{zone}]")
    return str(zone)


def _groups(
    backend: Any,
    parameters: dict[str, Any],
    interfaces: list[dict[str, Any]],
    subnet: Any,
) -> list[Any]:
    ids = list(parameters.get("SecurityGroupIds") or [])
    names = list(parameters.get("SecurityGroups") or [])
    if interfaces and (ids or names):
        raise AwsError(
            "InvalidParameterCombination",
            "Network interfaces and an instance-level security groups may not be "
            "specified on the same request",
        )
    vpc = subnet.vpc_id if subnet is not None else backend.default_vpc.id
    groups = [_group(backend, one, vpc, subnet) for one in ids]
    for nic in interfaces:
        for one in nic.get("Groups") or []:
            _group(backend, one, vpc, subnet)
    for name in names:
        group = backend.get_security_group_from_name(name, vpc)
        if group is None:
            raise AwsError(
                "InvalidGroup.NotFound",
                f"The security group '{name}' does not exist in default VPC '{vpc}'",
            )
        groups.append(group)
    if not groups and not interfaces:
        groups = [backend.get_default_security_group(vpc)]
    return groups


def _group(backend: Any, group_id: str, vpc: str, subnet: Any) -> Any:
    if not group_id.startswith("sg-"):
        raise AwsError(
            "InvalidGroupId.Malformed",
            f'Invalid id: "{group_id}" (expecting "sg-...")',
        )
    group = backend.get_security_group_from_id(group_id)
    if group is None:
        raise AwsError(
            "InvalidGroup.NotFound", f"The security group '{group_id}' does not exist"
        )
    if group.vpc_id != vpc:
        where = f"subnet {subnet.id}" if subnet is not None else f"VPC {vpc}"
        raise AwsError(
            "InvalidParameter",
            f"Security group {group_id} and {where} belong to different networks.",
        )
    return group


def _market(options: dict[str, Any] | None) -> dict[str, Any] | None:
    """The spot options, or None for on-demand."""
    if not options or not options.get("MarketType"):
        return None
    if options["MarketType"] != "spot":
        raise AwsError(
            "NotImplementedByEmulator",
            f"MarketType '{options['MarketType']}' is not emulated",
            501,
        )
    spot: dict[str, Any] = dict(options.get("SpotOptions") or {})
    kind = spot.get("SpotInstanceType") or "one-time"
    behavior = spot.get("InstanceInterruptionBehavior") or "terminate"
    if kind == "one-time" and behavior != "terminate":
        raise AwsError(
            "InvalidParameterCombination",
            f"The request with type '{kind}' is not supported when "
            f"instanceInterruptionBehavior is set to '{behavior}'.",
        )
    return spot


def _check_key(backend: Any, name: str | None) -> None:
    if name and name not in backend.key_pairs:
        raise AwsError(
            "InvalidKeyPair.NotFound", f"The key pair '{name}' does not exist"
        )


def _check_metadata(options: dict[str, Any]) -> None:
    tokens = options.get("HttpTokens", "optional")
    if tokens not in ("optional", "required"):
        raise _invalid(f"Value ({tokens}) for parameter HttpTokens is invalid.")
    hops = options.get("HttpPutResponseHopLimit")
    if hops is not None and not 1 <= int(hops) <= 64:
        raise _invalid(
            f"Value ({hops}) for parameter HttpPutResponseHopLimit is invalid."
        )


def _check_reservations(specification: dict[str, Any]) -> None:
    preference = specification.get("CapacityReservationPreference", "open")
    if preference not in ("open", "none"):
        raise _invalid(
            f"Value ({preference}) for parameter capacityReservationPreference is invalid."
        )


def _profile(backend: Any, wanted: dict[str, Any] | None) -> Any:
    if not wanted:
        return None
    profiles = iam_backends[backend.account_id][backend.partition].instance_profiles
    for profile in profiles.values():
        if profile.name == wanted.get("Name") or profile.arn == wanted.get("Arn"):
            return profile
    field = "name" if wanted.get("Name") else "arn"
    value = wanted.get("Name") or wanted.get("Arn")
    raise _invalid(
        f"Value ({value}) for parameter iamInstanceProfile.{field} is invalid. "
        f"Invalid IAM Instance Profile {'name' if field == 'name' else 'ARN'}"
    )


def _user_data(value: Any) -> Base64EncodedString | None:
    if value is None:
        return None
    try:
        encoded = Base64EncodedString(str(value))
    except ValueError as error:
        raise AwsError(
            "InvalidUserData.Malformed", "Invalid BASE64 encoding of user data."
        ) from error
    if len(base64.b64decode(str(encoded))) > USER_DATA_LIMIT:
        raise _invalid(f"User data is limited to {USER_DATA_LIMIT} bytes")
    return encoded
