"""EC2's request throttling: token buckets per account, region and API.

Numbers from "Request throttling for the Amazon EC2 API" (EC2 developer guide):
bucket maximum and refill per second.
"""

from dataclasses import dataclass
from threading import Lock

from .calls import Call
from .errors import KNOWN_ERRORS, AwsError


@dataclass(frozen=True)
class Limit:
    burst: float
    refill: float


NON_MUTATING = Limit(100, 20)
UNFILTERED = Limit(50, 10)
MUTATING = Limit(50, 5)
BY_OPERATION = {
    "RunInstances": Limit(5, 2),
    "StartInstances": Limit(5, 2),
    "TerminateInstances": Limit(100, 5),
    "CreateTags": Limit(100, 10),
}
# The resource token buckets: one token for each instance. A fleet counts as a launch.
LAUNCHED_INSTANCES = Limit(1000, 2)
ENDED_INSTANCES = Limit(1000, 20)

_READS = ("Describe", "Get", "List", "Search")


@dataclass
class _Bucket:
    tokens: float
    filled_at: float

    def take(self, limit: Limit, cost: float, now: float) -> bool:
        grown = self.tokens + (now - self.filled_at) * limit.refill
        self.tokens, self.filled_at = min(limit.burst, grown), now
        if self.tokens < cost:
            return False
        self.tokens -= cost
        return True


class Throttle:
    def __init__(self) -> None:
        self._lock = Lock()
        self._buckets: dict[tuple[str, str, str], _Bucket] = {}

    def clear(self) -> None:
        with self._lock:
            self._buckets.clear()

    def admit(self, call: Call, account: str, now: float) -> None:
        """Takes the call's tokens, or raises RequestLimitExceeded."""
        name, limit = _request_bucket(call)
        self._take((account, call.region, name), limit, 1, now)
        resources = _resource_bucket(call)
        if resources is not None:
            name, limit, instances = resources
            self._take((account, call.region, name), limit, float(instances), now)

    def _take(
        self, key: tuple[str, str, str], limit: Limit, cost: float, now: float
    ) -> None:
        with self._lock:
            bucket = self._buckets.setdefault(key, _Bucket(limit.burst, now))
            if bucket.take(limit, cost, now):
                return
        known = KNOWN_ERRORS["RequestLimitExceeded"]
        raise AwsError("RequestLimitExceeded", known.message, known.status)


def _resource_bucket(call: Call) -> tuple[str, Limit, int] | None:
    """The bucket of the instances that a call launches or ends, and how many these are."""
    parameters = call.parameters
    if call.operation == "RunInstances":
        return "launched", LAUNCHED_INSTANCES, int(parameters.get("MaxCount") or 1)
    if call.operation == "CreateFleet":
        capacity = parameters.get("TargetCapacitySpecification") or {}
        asked = int(capacity.get("TotalTargetCapacity") or 1)
        return "launched", LAUNCHED_INSTANCES, asked
    if call.operation == "TerminateInstances":
        return "ended", ENDED_INSTANCES, len(parameters.get("InstanceIds") or [])
    return None


def _request_bucket(call: Call) -> tuple[str, Limit]:
    own = BY_OPERATION.get(call.operation)
    if own is not None:
        return call.operation, own
    if not call.operation.startswith(_READS):
        return "mutating", MUTATING
    narrowed = {"MaxResults", "NextToken", "Filters"} & set(call.parameters)
    listed = any(name.endswith("Ids") for name in call.parameters)
    if call.operation.startswith("Describe") and not narrowed and not listed:
        return "unfiltered", UNFILTERED
    return "non-mutating", NON_MUTATING
