"""Instance types, the zones that offer them, and their spot prices."""

import zlib
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES
from moto.ec2.models.instance_types import InstanceType as MotoInstanceType
from moto.ec2.responses._base_response import EC2BaseResponse

from ..errors import AwsError
from .filters import Values, select
from .paging import page
from .region import Region
from .wire import Answer

# On-demand USD per hour in us-east-1, Linux, November 2026 price list.
ON_DEMAND = {
    "g4dn.xlarge": 0.526,
    "g4dn.2xlarge": 0.752,
    "g4dn.4xlarge": 1.204,
    "g4dn.8xlarge": 2.176,
    "g4dn.12xlarge": 3.912,
    "g4dn.16xlarge": 4.352,
    "g4dn.metal": 7.824,
    "g5.xlarge": 1.006,
    "g5.2xlarge": 1.212,
    "g5.4xlarge": 1.624,
    "g5.8xlarge": 2.448,
    "g5.12xlarge": 5.672,
    "g5.16xlarge": 4.096,
    "g5.24xlarge": 8.144,
    "g5.48xlarge": 16.288,
    "g6.xlarge": 0.805,
    "g6.2xlarge": 0.978,
    "g6.4xlarge": 1.323,
    "g6.8xlarge": 2.014,
    "g6.12xlarge": 4.602,
    "g6.16xlarge": 3.397,
    "g6.24xlarge": 6.675,
    "g6.48xlarge": 13.35,
    "g6e.xlarge": 1.861,
    "g6e.2xlarge": 2.242,
    "g6e.4xlarge": 3.004,
    "g6e.8xlarge": 4.529,
    "g6e.12xlarge": 10.493,
    "g6e.16xlarge": 7.577,
    "g6e.24xlarge": 15.066,
    "g6e.48xlarge": 30.131,
    "p4d.24xlarge": 21.958,
    "p5.48xlarge": 55.04,
}
_USD_PER_VCPU = 0.05

# How long a spot price is valid, and the default length of the price history.
PRICE_HOLDS = timedelta(hours=6)
HISTORY = timedelta(days=1)
PRODUCT = "Linux/UNIX"


@cache
def zones_offering(region: str, instance_type: str) -> tuple[str, ...]:
    """The region's Availability Zones that offer the type, in order."""
    offerings = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(region, [])
    return tuple(
        sorted(o["Location"] for o in offerings if o["InstanceType"] == instance_type)
    )


@cache
def types_in(region: str) -> frozenset[str]:
    offerings = INSTANCE_TYPE_OFFERINGS["region"].get(region, [])
    return frozenset(o["InstanceType"] for o in offerings)


def on_demand_price(instance_type: str) -> float:
    known = ON_DEMAND.get(instance_type)
    if known is not None:
        return known
    cores: int = INSTANCE_TYPES[instance_type]["VCpuInfo"]["DefaultVCpus"]
    return cores * _USD_PER_VCPU


def spot_price(instance_type: str, zone: str, at: datetime) -> float:
    """30 to 40 per cent of on-demand. Constant for each type, zone and period."""
    period = int(at.timestamp() // PRICE_HOLDS.total_seconds())
    pool = zlib.crc32(f"{instance_type}/{zone}".encode()) % 900
    drift = zlib.crc32(f"{instance_type}/{zone}/{period}".encode()) % 100
    return round(on_demand_price(instance_type) * (0.30 + (pool + drift) / 10_000), 6)


def _list(value: Any) -> list[Any]:
    return list(value) if value else []


_OFFERING_FILTERS = {
    "instance-type": lambda one: one["InstanceType"],
    "location": lambda one: one["Location"],
}
_PRICE_FILTERS = {
    "availability-zone": lambda one: one["AvailabilityZone"],
    "instance-type": lambda one: one["InstanceType"],
    "product-description": lambda one: one["ProductDescription"],
    "spot-price": lambda one: one["SpotPrice"],
}


def _no_tags(_: Any) -> dict[str, str]:
    return {}


def _numbered(items: list[Any], parameters: dict[str, Any], *limits: Any) -> Any:
    smallest, largest, default = limits
    pairs, token = page(
        list(enumerate(items)),
        parameters,
        smallest,
        largest,
        default,
        lambda pair: pair[0],
    )
    return [item for _, item in pairs], token


def _type_getter(name: str) -> Any:
    def get(one: MotoInstanceType) -> Values:
        value = one.get_filter_value(name)
        if isinstance(value, list):
            return [str(item) for item in value]
        return None if value is None else str(value)

    return get


class Offerings(EC2BaseResponse):
    here: Region

    def describe_instance_type_offerings(self) -> ActionResult:
        self.error_on_dryrun()
        location = self._get_param("LocationType") or "region"
        if location not in INSTANCE_TYPE_OFFERINGS:
            raise AwsError(
                "InvalidParameterValue",
                f"The location type '{location}' is invalid",
            )
        found = select(
            INSTANCE_TYPE_OFFERINGS[location].get(self.region, []),
            self._get_param("Filters", []),
            _OFFERING_FILTERS,
            _no_tags,
        )
        found.sort(key=lambda one: (one["InstanceType"], one["Location"]))
        offerings, token = _numbered(found, dict(self.params), 5, 1000, 1000)
        return Answer({"InstanceTypeOfferings": offerings, "NextToken": token})

    def describe_instance_types(self) -> ActionResult:
        self.error_on_dryrun()
        offered = types_in(self.region)
        wanted = self._get_param("InstanceTypes", [])
        unknown = [one for one in wanted if one not in offered]
        if unknown:
            raise AwsError(
                "InvalidInstanceType",
                "The following supplied instance types do not exist: "
                f"[{', '.join(unknown)}]",
            )
        names = sorted(set(wanted) or offered)
        types = [MotoInstanceType(name) for name in names if name in INSTANCE_TYPES]
        known = MotoInstanceType._filter_attributes
        found = select(
            types,
            self._get_param("Filters", []),
            {name: _type_getter(name) for name in known},
            _no_tags,
        )
        shown, token = _numbered(found, dict(self.params), 5, 100, 100)
        return Answer({"InstanceTypes": shown, "NextToken": token})

    def describe_spot_price_history(self) -> ActionResult:
        self.error_on_dryrun()
        now = self.here.clock.now()
        end = _aware(self._get_param("EndTime"), now)
        start = _aware(self._get_param("StartTime"), now - HISTORY)
        products = _list(self._get_param("ProductDescriptions")) or [PRODUCT]
        wanted = _list(self._get_param("InstanceTypes"))
        zone = self._get_param("AvailabilityZone")
        history: list[dict[str, Any]] = []
        if PRODUCT in products or f"{PRODUCT} (Amazon VPC)" in products:
            for name in wanted or sorted(types_in(self.region)):
                for place in zones_offering(self.region, name):
                    if zone in (None, place):
                        history += _prices(name, place, start, min(end, now))
        found = select(
            history, self._get_param("Filters", []), _PRICE_FILTERS, _no_tags
        )
        shown, token = _numbered(found, dict(self.params), 1, 1000, 1000)
        # EC2's answer has an empty token on the last page.
        return Answer({"SpotPriceHistory": shown, "NextToken": token or ""})


def _aware(value: datetime | None, default: datetime) -> datetime:
    if value is None:
        return default
    return value if value.tzinfo else value.replace(tzinfo=default.tzinfo)


def _prices(
    name: str, zone: str, start: datetime, end: datetime
) -> list[dict[str, Any]]:
    """The price changes, from the newest back to the one that is valid at `start`."""
    if name not in INSTANCE_TYPES or "spot" not in INSTANCE_TYPES[name].get(
        "SupportedUsageClasses", []
    ):
        return []
    hold = PRICE_HOLDS.total_seconds()
    at = datetime.fromtimestamp(end.timestamp() // hold * hold, end.tzinfo)
    prices: list[dict[str, Any]] = []
    while True:
        prices.append(
            {
                "AvailabilityZone": zone,
                "InstanceType": name,
                "ProductDescription": PRODUCT,
                "SpotPrice": f"{spot_price(name, zone, at):.6f}",
                "Timestamp": at,
            }
        )
        if at <= start:
            return prices
        at -= PRICE_HOLDS
