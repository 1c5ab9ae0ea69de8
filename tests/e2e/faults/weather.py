"""Faults of EC2 that begin and end at random."""

from collections import Counter
from random import Random
from threading import Lock
from typing import Any

from environment.emulator import Emulator

from .journal import Journal

# Only the provider under test signs its calls with this key. The faults match the key,
# so that they do not affect the calls of the checks.
KEY = "AKIAFAULTS0000000000"
OF_PROVIDER = {"AccessKey": KEY}

KINDS = ("throttled", "lost reply", "quota", "denied", "capacity")
_CHANGES = (
    *("CreateFleet", "CreateFleet", "CreateFleet", "TerminateInstances"),
    *("CreateLaunchTemplate", "DeleteLaunchTemplate"),
    *("CreateSecurityGroup", "DeleteSecurityGroup", "AuthorizeSecurityGroupIngress"),
)
_THROTTLED = ("*", "Describe*", "DescribeInstances", *_CHANGES)
_DENIED = ("DescribeInstances", "CreateTags", *_CHANGES)
_ZONES = ("us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d")
_PLACES = (
    {"InstanceType": "g4dn.*"},
    {"InstanceType": "g5.*"},
    {"MarketType": "spot"},
    *({"AvailabilityZone": zone} for zone in _ZONES),
)
# Seconds until EC2 lists a new instance. At 0 s a new provider finds the instance in
# EC2's lists, and does not need the launch that its predecessor persisted.
LATE = (0, 2, 5, 8, 12)


class Weather:
    """At most MOST faults at the same time. Each ends by itself or by `change`."""

    MOST = 4

    def __init__(self, emulator: Emulator, journal: Journal) -> None:
        self._emulator = emulator
        self._journal = journal
        self._dice = journal.dice("weather")
        self._lock = Lock()
        self._blowing: dict[str, str] = {}
        self.struck: Counter[str] = Counter()

    def change(self) -> None:
        """A fault begins, or the oldest one ends."""
        with self._lock:
            if len(self._blowing) >= self._dice.randint(2, self.MOST):
                self._end([next(iter(self._blowing))])
                return
            kind = self._dice.choice(KINDS)
            fields = draw(kind, self._dice)
            self._journal.note(f"weather: {kind} {fields}")
            self._blowing[self._emulator.fault(**fields)] = kind

    def clear(self) -> None:
        with self._lock:
            self._journal.note("weather: clear")
            self._end(list(self._blowing))
            self._emulator.show_instances_after(0)

    def haze(self) -> None:
        """Makes EC2 list new instances late, as the real EC2 may."""
        seconds = self._dice.choice(LATE)
        self._journal.note(f"weather: instances are listed after {seconds} s")
        self._emulator.show_instances_after(seconds)

    def _end(self, ids: list[str]) -> None:
        hits = {fault["id"]: fault["hits"] for fault in self._emulator.faults()}
        for id_ in ids:
            self.struck[self._blowing.pop(id_)] += hits.get(id_, 0)
            self._emulator.end_fault(id_)


def draw(kind: str, dice: Random) -> dict[str, Any]:
    """A fault of a kind, as the emulator takes it."""
    if kind == "throttled":
        operation, code = dice.choice(_THROTTLED), "RequestLimitExceeded"
        times = dice.choice([2, 5, 20])
        return _refusal(operation, code, match=OF_PROVIDER, times=times)
    if kind == "lost reply":
        # The SDK tries a call three times. If all three replies are lost, the provider
        # sees the error.
        return {
            "operation": dice.choice(_CHANGES),
            "effect": "lose-reply",
            "match": OF_PROVIDER,
            "times": dice.randint(1, 7),
        }
    if kind == "denied":
        operation, code = dice.choice(_DENIED), "UnauthorizedOperation"
        times = dice.choice([1, 3, 10])
        return _refusal(operation, code, match=OF_PROVIDER, times=times)
    if kind == "quota":
        market = {"MarketType": dice.choice(["spot", "spot", "on-demand"])}
        code = "MaxSpotInstanceCountExceeded"
        if market["MarketType"] == "on-demand":
            code = "VcpuLimitExceeded"
        times = dice.choice([2, 8, None])
        return _refusal("CreateFleet", code, match=market, times=times)
    return _refusal(
        "CreateFleet",
        "InsufficientInstanceCapacity",
        match=dice.choice(_PLACES),
        times=dice.choice([5, 20, None]),
        available=dice.choice([0, 0, 1]),
    )


def _refusal(operation: str, code: str, **fields: Any) -> dict[str, Any]:
    return {"operation": operation, "code": code, **fields}
