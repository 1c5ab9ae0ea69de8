"""Faults that tests request: which call fails, how, and how often."""

import itertools
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from threading import Lock
from typing import Any

from .calls import Call
from .errors import PLACEMENT_CODES, AwsError, default_message, default_status

# Operations that check the faults of placement themselves.
PLACING = ("RunInstances", "CreateFleet")

DELAYS = ("delay", "delay-reply")
# EC2 accepts the launch, and ends its instances before they run; or it accepts a volume,
# and takes it back before it is available.
ENDS = "end"
EFFECTS = ("refuse", "lose-reply", ENDS, *DELAYS)
# Where a refusal is: in the place of the answer, or inside an answer that succeeded.
PLACES = ("front", "inside")
_FIELDS = {
    "operation",
    "match",
    "code",
    "status",
    "message",
    "times",
    "effect",
    "seconds",
    "available",
    "place",
}


class InvalidFault(ValueError):
    """The message names the field of the fault document, and its valid values."""


@dataclass
class Fault:
    """One fault. `times` counts down, and None means no limit.

    `available` is for missing capacity: EC2 still grants so many instances, once.
    """

    id: str
    operation: str
    match: dict[str, str]
    effect: str
    code: str = ""
    status: int = 400
    message: str = ""
    times: int | None = None
    seconds: float = 0.0
    available: int = 0
    place: str = "front"
    hits: int = field(default=0)

    @property
    def at_placement(self) -> bool:
        """Whether EC2 gives this refusal only after validation and token lookup."""
        return self.effect == "refuse" and self.place == "inside"

    def error(self, facts: dict[str, str] | None = None) -> AwsError:
        """The refusal. Its message names the facts that stand in braces."""
        message = self.message
        for name, value in (facts or {}).items():
            message = message.replace(f"{{{name}}}", value)
        return AwsError(self.code, message, self.status)

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "operation": self.operation,
            "match": self.match,
            "effect": self.effect,
            "code": self.code,
            "status": self.status,
            "message": self.message,
            "times": self.times,
            "seconds": self.seconds,
            "available": self.available,
            "place": self.place,
            "hits": self.hits,
        }


class Faults:
    def __init__(self) -> None:
        self._lock = Lock()
        self._rules: list[Fault] = []
        self._ids = itertools.count(1)

    def add(self, document: Any) -> Fault:
        fault = parse_fault(document, f"fault-{next(self._ids)}")
        with self._lock:
            self._rules.append(fault)
        return fault

    def all(self) -> list[Fault]:
        with self._lock:
            return list(self._rules)

    def remove(self, fault_id: str) -> bool:
        with self._lock:
            before = len(self._rules)
            self._rules = [rule for rule in self._rules if rule.id != fault_id]
            return len(self._rules) < before

    def clear(self) -> None:
        with self._lock:
            self._rules.clear()

    def take_at_front(self, call: Call) -> list[Fault]:
        """The faults that affect this call, before or after it takes effect.

        These are all matching delays, and the first of the other matching faults.
        """
        taken: list[Fault] = []
        with self._lock:
            for rule in self._rules:
                if rule.at_placement and call.operation in PLACING:
                    continue
                if rule.effect == ENDS:
                    continue
                others = any(one.effect not in DELAYS for one in taken)
                if others and rule.effect not in DELAYS:
                    continue
                if _strikes(rule, call.operation, call.parameters, call.facts()):
                    taken.append(_hit(rule))
        return taken

    def take_at_placement(
        self, operation: str, parameters: dict[str, Any], facts: dict[str, str]
    ) -> Fault | None:
        """The fault that refuses this offering, by the offering's effective facts."""
        with self._lock:
            for rule in self._rules:
                if rule.at_placement and _strikes(rule, operation, parameters, facts):
                    return _hit(rule)
        return None

    def take_at_birth(
        self, operation: str, parameters: dict[str, Any], facts: dict[str, str]
    ) -> Fault | None:
        """The fault that ends the instances of this launch, or takes this volume back."""
        with self._lock:
            for rule in self._rules:
                if rule.effect == ENDS and _strikes(rule, operation, parameters, facts):
                    return _hit(rule)
        return None


def parse_fault(document: Any, fault_id: str) -> Fault:
    """Reads a fault from its JSON document, or raises InvalidFault."""
    if not isinstance(document, dict):
        raise InvalidFault("fault: expected a JSON object")
    unknown = sorted(set(document) - _FIELDS)
    if unknown:
        raise InvalidFault(
            f"{unknown[0]}: no such field; there are {', '.join(sorted(_FIELDS))}"
        )
    operation = document.get("operation")
    if not isinstance(operation, str) or not operation:
        raise InvalidFault('operation: expected a name such as "RunInstances"')
    effect = document.get("effect", "refuse")
    if effect not in EFFECTS:
        raise InvalidFault(f"effect: expected one of {', '.join(EFFECTS)}")
    match = document.get("match") or {}
    if not isinstance(match, dict):
        raise InvalidFault("match: expected an object of parameter names and values")
    code = document.get("code", "")
    if effect in ("refuse", ENDS) and not code:
        raise InvalidFault(f'code: expected an error code for effect "{effect}"')
    inside = code in PLACEMENT_CODES
    place = document.get("place", "inside" if inside else "front")
    if place not in PLACES:
        raise InvalidFault(f"place: expected one of {', '.join(PLACES)}")
    return Fault(
        id=fault_id,
        operation=operation,
        match={str(name): _text(value) for name, value in match.items()},
        effect=effect,
        code=code,
        status=_number(document, "status", default_status(code), whole=True),
        message=document.get("message") or default_message(code),
        times=_times(document),
        seconds=_number(document, "seconds", 0.0),
        available=_number(document, "available", 0, whole=True),
        place=place,
    )


def _times(document: dict[str, Any]) -> int | None:
    if document.get("times") is None:
        return None
    times: int = _number(document, "times", 1, whole=True)
    if times < 1:
        raise InvalidFault("times: expected 1 or more, or null for ever")
    return times


def _number(
    document: dict[str, Any], name: str, default: Any, whole: bool = False
) -> Any:
    value = document.get(name, default)
    wanted: Any = int if whole else int | float
    if isinstance(value, bool) or not isinstance(value, wanted) or value < 0:
        kind = "a whole number" if whole else "a number"
        raise InvalidFault(f"{name}: expected {kind}, 0 or more")
    return value


def _hit(rule: Fault) -> Fault:
    rule.hits += 1
    if rule.times is not None:
        rule.times -= 1
    return rule


def _strikes(
    rule: Fault, operation: str, parameters: dict[str, Any], facts: dict[str, str]
) -> bool:
    if rule.times == 0 or not fnmatchcase(operation, rule.operation):
        return False
    return all(
        any(
            fnmatchcase(value, wanted)
            for value in ([facts[name]] if name in facts else lookup(parameters, name))
        )
        for name, wanted in rule.match.items()
    )


def lookup(parameters: Any, path: str) -> list[str]:
    """The values at a dotted path. The path continues in each item of a list."""
    found = [parameters]
    for step in path.split("."):
        deeper: list[Any] = []
        for one in found:
            for item in one if isinstance(one, list) else [one]:
                if isinstance(item, dict) and step in item:
                    deeper.append(item[step])
        found = deeper
    flat: list[str] = []
    for one in found:
        flat += [_text(item) for item in (one if isinstance(one, list) else [one])]
    return flat


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
