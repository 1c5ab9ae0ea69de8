"""Launches the instances of a valid request: their zone, number and parts."""

from typing import Any

from moto.ec2.models.instances import Reservation, StateReason
from moto.ec2.utils import random_reservation_id

from ..errors import AwsError, default_message
from ..faults import Fault, Faults
from .block_devices import attach_devices
from .instance import EmulatedInstance
from .launch_request import LaunchRequest
from .offerings import spot_price, zones_offering
from .profiles import associate_profile
from .region import Region
from .spot import SpotRequest


def place(
    region: Region, faults: Faults, operation: str, request: LaunchRequest
) -> tuple[str, int]:
    """The zone of the launch, and how many instances it grants.

    If the request names no zone, EC2 chooses one. The emulator takes the first zone
    that offers the type and that no fault refuses.
    """
    offered = zones_offering(region.name, request.instance_type)
    if not offered or request.zone not in (None, *offered):
        raise _not_offered(request.instance_type, request.zone, offered)
    _check_price(region, request, request.zone or offered[0])
    # The faults are checked once for the request, and then for each zone. Only faults
    # that name a zone distinguish these checks.
    fault = faults.take_at_placement(operation, request.parameters, request.facts)
    candidates = (request.zone,) if request.zone is not None else offered
    for zone in candidates:
        in_zone = fault or _down(region, zone)
        in_zone = in_zone or faults.take_at_placement(
            operation,
            request.parameters,
            {**request.facts, "AvailabilityZone": zone},
        )
        if in_zone is None:
            return zone, request.maximum
        granted = min(in_zone.available, request.maximum)
        if granted >= request.minimum:
            in_zone.available -= granted
            return zone, granted
        others = [one for one in offered if one != zone]
        # EC2 names other zones from call to call.
        first = in_zone.hits % len(others) if others else 0
        others = others[first:] + others[:first]
        refusal = in_zone.error(
            {
                **request.facts,
                "AvailabilityZone": zone,
                "Others": ", ".join(others[:2]),
            }
        )
    raise refusal


def _down(region: Region, zone: str) -> Fault | None:
    """The refusal of a launch into a zone that is down."""
    if region.settings.zone_down != zone:
        return None
    code = "InsufficientInstanceCapacity"
    message = default_message(code)
    return Fault(
        id="", operation="", match={}, effect="refuse", code=code, message=message
    )


def launch(
    region: Region,
    request: LaunchRequest,
    zone: str,
    count: int,
    own_tags: dict[str, str],
    fault: Fault | None,
) -> list[EmulatedInstance]:
    """Builds the instances, in one reservation and in state `pending`.

    `own_tags` are the tags that EC2 itself adds, with the prefix `aws:`. `fault` ends the
    instances before they run.
    """
    backend = region.backend
    booked = Reservation(random_reservation_id(), owner_id=backend.account_id)
    launched = _build_all(region, request, zone, count)
    booked.instances = [*launched]
    backend.reservations[booked.id] = booked
    for instance in launched:
        instance.reservation_id = booked.id
        region.adopt(instance)
        backend.create_tags([instance.id], request.tags.get("instance", {}))
        backend.tags[instance.id].update(own_tags)
        attach_devices(instance, request.devices, request.tags.get("volume", {}))
        for nic in instance.nics.values():
            nic.add_tags(request.tags.get("network-interface", {}))
        if request.profile is not None:
            associate_profile(instance, request.profile)
        if request.market is not None:
            _request_spot(region, instance, request)
        death = StateReason(fault.message, fault.code) if fault else None
        instance.begin(death)
    return launched


def _build_all(
    region: Region, request: LaunchRequest, zone: str, count: int
) -> list[EmulatedInstance]:
    """Builds all instances. After an error it builds none."""
    built: list[EmulatedInstance] = []
    try:
        for index in range(count):
            built.append(_build(region, request, zone, index))
    except AwsError:
        for instance in built:
            instance.release()
        raise
    return built


def _not_offered(kind: str, zone: str | None, offered: tuple[str, ...]) -> AwsError:
    return AwsError(
        "Unsupported",
        f"Your requested instance type ({kind}) is not supported in your requested "
        f"Availability Zone ({zone}). Please retry your request by not specifying an "
        f"Availability Zone or choosing {', '.join(offered)}.",
    )


def _check_price(region: Region, request: LaunchRequest, zone: str) -> None:
    limit = (request.market or {}).get("MaxPrice")
    if limit is None:
        return
    price = spot_price(request.instance_type, zone, region.clock.now())
    if float(limit) < price:
        raise AwsError(
            "SpotMaxPriceTooLow",
            f"Your Spot request price of {limit} is lower than the minimum required "
            f"Spot request fulfillment price of {price}.",
        )


def _build(
    region: Region, request: LaunchRequest, zone: str, index: int
) -> EmulatedInstance:
    given = request.parameters
    subnet = request.subnet or region.backend.get_default_subnets().get(zone)
    if subnet is None:
        raise AwsError(
            "MissingInput",
            f"No default subnet for availability zone: '{zone}'.",
        )
    try:
        instance = EmulatedInstance(  # type: ignore[abstract]  # as moto does
            region,
            request.image.id,
            user_data=request.user_data,
            security_groups=request.groups,
            instance_type=request.instance_type,
            placement=zone,
            region_name=region.name,
            subnet_id=subnet.id,
            key_name=given.get("KeyName"),
            nics=_interfaces(request, subnet),
            private_ip=given.get("PrivateIpAddress"),
            associate_public_ip=None,
            ebs_optimized=given.get("EbsOptimized") or False,
            disable_api_stop=given.get("DisableApiStop") or False,
            disable_api_termination=given.get("DisableApiTermination") or False,
            instance_initiated_shutdown_behavior=given.get(
                "InstanceInitiatedShutdownBehavior"
            ),
            hibernation_options=given.get("HibernationOptions"),
            monitoring_state=_monitoring(given),
            metadata_options=given.get("MetadataOptions") or {},
            client_token=given.get("ClientToken"),
            ami_launch_index=index,
            lifecycle="spot" if request.is_spot else None,
        )
    except StopIteration as error:
        raise AwsError(
            "InsufficientFreeAddressesInSubnet",
            f"There are not enough free addresses in subnet '{subnet.id}' to satisfy "
            "the requested number of instances.",
        ) from error
    reservations = given.get("CapacityReservationSpecification") or {}
    preference = reservations.get("CapacityReservationPreference")
    instance.capacity_reservations = preference or "open"
    return instance


def _monitoring(given: dict[str, Any]) -> str:
    enabled = (given.get("Monitoring") or {}).get("Enabled")
    return "enabled" if enabled else "disabled"


def _interfaces(request: LaunchRequest, subnet: Any) -> list[dict[str, Any]]:
    """The interface specifications, with EC2's defaults.

    An interface that the launch creates is deleted with the instance.
    """
    specified = request.interfaces or [{"DeviceIndex": 0}]
    interfaces: list[dict[str, Any]] = []
    for one in specified:
        nic = dict(one)
        if not nic.get("NetworkInterfaceId"):
            nic.setdefault("DeleteOnTermination", True)
            nic.setdefault("SubnetId", subnet.id)
        interfaces.append(nic)
    return interfaces


def _request_spot(
    region: Region, instance: EmulatedInstance, request: LaunchRequest
) -> None:
    spot = SpotRequest(region, instance, request.market or {})
    region.backend.spot_instance_requests[spot.id] = spot
    spot.add_tags(request.tags.get("spot-instances-request", {}))
    instance.spot_request = spot
