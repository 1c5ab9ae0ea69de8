"""The offerings of an instant fleet, their order, and the number of instances of each.

"EC2 Fleet and Spot Fleet request types" and "Use allocation strategies" (EC2 user
guide). An instant fleet tries each offering once. The answer has the launched
instances, and an error for each offering that failed.
"""

from dataclasses import dataclass, field
from typing import Any

from ..errors import AwsError
from ..faults import Faults
from .launch import place
from .launch_request import LaunchRequest, check_request
from .offerings import on_demand_price, spot_price, zones_offering
from .region import Region
from .templates import only_instance_parameters, with_template

# The template's parameters that an override may change, beside the placement.
_OVERRIDDEN = ("InstanceType", "ImageId", "SubnetId", "BlockDeviceMappings")


@dataclass(frozen=True)
class Offering:
    """One launch template with one override of the request."""

    template: dict[str, Any]
    override: dict[str, Any]
    parameters: dict[str, Any]
    own_tags: dict[str, str]
    market: str

    def described(self) -> dict[str, Any]:
        named = self.template
        version = str(named.get("Version") or "$Default")
        shown = {k: v for k, v in named.items() if k != "Version"}
        return {
            "LaunchTemplateSpecification": {**shown, "Version": version},
            "Overrides": self.override,
        }


@dataclass(frozen=True)
class Share:
    """A number of instances of an offering in a zone."""

    offering: Offering
    request: LaunchRequest
    zone: str
    count: int


@dataclass
class FleetPlan:
    shares: list[Share] = field(default_factory=list)
    refusals: list[tuple[Offering, AwsError]] = field(default_factory=list)

    def planned(self, market: str) -> int:
        return sum(one.count for one in self.shares if one.offering.market == market)


def plan_fleet(region: Region, faults: Faults, parameters: dict[str, Any]) -> FleetPlan:
    """Plans the whole fleet, before any instance is launched."""
    plan = FleetPlan()
    for market, target in _targets(parameters).items():
        options = parameters.get(
            "SpotOptions" if market == "spot" else "OnDemandOptions"
        )
        offerings = _ordered(
            region, _offerings(region, parameters, market), options or {}
        )
        for offering in offerings:
            missing = target - plan.planned(market)
            if missing <= 0:
                break
            _take(region, faults, plan, offering, missing)
        least = (options or {}).get("MinTargetCapacity") or 0
        if plan.planned(market) < least:
            plan.shares = [one for one in plan.shares if one.offering.market != market]
    return plan


def _targets(parameters: dict[str, Any]) -> dict[str, int]:
    capacity = parameters.get("TargetCapacitySpecification") or {}
    total = capacity.get("TotalTargetCapacity")
    if total is None:
        raise AwsError(
            "MissingParameter",
            "The request must contain the parameter TotalTargetCapacity",
        )
    on_demand = capacity.get("OnDemandTargetCapacity") or 0
    spot = capacity.get("SpotTargetCapacity") or 0
    if on_demand + spot > total:
        raise AwsError(
            "InvalidTargetCapacitySpecification",
            "The sum of on-demand and spot capacity exceeds the total target capacity",
        )
    rest = total - on_demand - spot
    if capacity.get("DefaultTargetCapacityType", "on-demand") == "spot":
        spot += rest
    else:
        on_demand += rest
    targets = {"on-demand": on_demand, "spot": spot}
    return {market: target for market, target in targets.items() if target}


def _offerings(
    region: Region, parameters: dict[str, Any], market: str
) -> list[Offering]:
    configs = parameters.get("LaunchTemplateConfigs") or []
    if not configs:
        raise AwsError(
            "MissingParameter",
            "The request must contain the parameter LaunchTemplateConfigs",
        )
    offerings: list[Offering] = []
    for config in configs:
        named = config.get("LaunchTemplateSpecification") or {}
        for override in config.get("Overrides") or [{}]:
            if override.get("InstanceRequirements"):
                raise AwsError(
                    "NotImplementedByEmulator",
                    "InstanceRequirements are not emulated",
                    501,
                )
            offerings.append(_offering(region, parameters, named, override, market))
    _check_pools(offerings)
    return offerings


def _check_pools(offerings: list[Offering]) -> None:
    """Each offering may be in a fleet once: aws-samples/aws-plugin-for-slurm#19."""
    pools = [
        (
            offering.override.get("InstanceType"),
            offering.override.get("AvailabilityZone"),
        )
        for offering in offerings
        if offering.override.get("AvailabilityZone")
    ]
    if len(set(pools)) < len(pools):
        raise AwsError(
            "InvalidFleetConfig",
            "The fleet configuration contains duplicate instance pools.",
        )


def _offering(
    region: Region,
    parameters: dict[str, Any],
    named: dict[str, Any],
    override: dict[str, Any],
    market: str,
) -> Offering:
    given: dict[str, Any] = {"LaunchTemplate": named}
    given |= {k: override[k] for k in _OVERRIDDEN if override.get(k)}
    if override.get("AvailabilityZone"):
        given["Placement"] = {"AvailabilityZone": override["AvailabilityZone"]}
    effective, own_tags = with_template(region.backend, given)
    effective = only_instance_parameters(effective)
    effective.pop("InstanceMarketOptions", None)
    if market == "spot":
        spot = {"MaxPrice": override["MaxPrice"]} if override.get("MaxPrice") else {}
        effective["InstanceMarketOptions"] = {
            "MarketType": "spot",
            "SpotOptions": spot,
        }
    tags = [*effective.get("TagSpecifications", [])]
    for one in parameters.get("TagSpecifications") or []:
        if one.get("ResourceType") != "fleet":
            tags.append(one)
    effective["TagSpecifications"] = tags
    return Offering(named, override, effective, own_tags, market)


def _ordered(
    region: Region, offerings: list[Offering], options: dict[str, Any]
) -> list[Offering]:
    """The offerings by priority or by price. Only faults limit the capacity."""
    strategy = options.get("AllocationStrategy") or "lowest-price"

    def rank(offering: Offering) -> tuple[float, float]:
        priority = 0.0
        if strategy.endswith("prioritized"):
            priority = float(offering.override.get("Priority") or 0)
        return priority, _price(region, offering)

    return sorted(offerings, key=rank)


def _price(region: Region, offering: Offering) -> float:
    kind = offering.parameters.get("InstanceType") or ""
    zones = zones_offering(region.name, kind)
    if not zones:
        return float("inf")
    if offering.market != "spot":
        return on_demand_price(kind)
    named = offering.override.get("AvailabilityZone")
    now = region.clock.now()
    return min(spot_price(kind, zone, now) for zone in ([named] if named else zones))


def _take(
    region: Region, faults: Faults, plan: FleetPlan, offering: Offering, missing: int
) -> None:
    wanted = {**offering.parameters, "MinCount": 1, "MaxCount": missing}
    try:
        request = check_request(region.backend, wanted)
        zone, count = place(region, faults, "CreateFleet", request)
    except AwsError as error:
        plan.refusals.append((offering, error))
        return
    plan.shares.append(Share(offering, request, zone, count))
    if count < missing and offering.override.get("AvailabilityZone"):
        # EC2 granted only a part. The next attempt would refuse the rest.
        code = "InsufficientInstanceCapacity"
        text = "There is no more capacity available that matches your request."
        plan.refusals.append((offering, AwsError(code, text)))
