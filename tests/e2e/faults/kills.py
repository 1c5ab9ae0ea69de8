"""SIGKILL to the provider, at moments that are drawn or aimed at."""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from random import Random

from environment.cluster import Cluster
from environment.objects import Object
from environment.emulator import Emulator
from environment.pools import PODS
from environment.waiting import until

from .journal import Journal
from .storm import Storm
from .weather import OF_PROVIDER

# Before EC2 acts; less than a new provider takes to ask again: EC2 knows a token from
# the moment that it has the call.
BEFORE = 0.8
# Between what EC2 does and its answer.
HELD = 3.0
# How long a provider lives before it is aimed at.
LIFE = (0.0, 7.0)
# How long an aim is waited for.
PATIENCE = 8.0
# How lately a call was answered whose result the provider is still busy with.
JUST = 0.3
# How long it has changed nothing when it is at rest.
RESTED = 2.0
_READS = ("Describe", "Get", "List")


@dataclass(frozen=True)
class Aim:
    """A moment: `before` EC2 acts, while the answer is `held`, `after` it, of a call;
    `at rest`, `starting`, at `any` moment, or `now` without one."""

    moment: str
    operation: str = ""


AIMS = {
    Aim("any"): 10,
    Aim("at rest"): 6,
    Aim("starting"): 4,
    Aim("before", "CreateFleet"): 7,
    Aim("held", "CreateFleet"): 7,
    Aim("after", "CreateFleet"): 6,
    Aim("before", "TerminateInstances"): 2,
    Aim("held", "TerminateInstances"): 2,
    Aim("after", "TerminateInstances"): 2,
    Aim("held", "CreateLaunchTemplate"): 2,
    Aim("held", "CreateSecurityGroup"): 2,
}


def deck(number: int, dice: Random) -> list[Aim]:
    """So many aims, in proportion, in an order of chance."""
    one = [aim for aim, weight in AIMS.items() for _ in range(weight)]
    cards: list[Aim] = []
    while len(cards) < number:
        dice.shuffle(one)
        cards += one
    return cards[:number]


class Kills:
    def __init__(
        self, cluster: Cluster, emulator: Emulator, storm: Storm, journal: Journal
    ) -> None:
        self._cluster = cluster
        self._emulator = emulator
        self._storm = storm
        self._journal = journal
        self._dice = journal.dice("kills")
        self._last = ""
        # By what the provider was doing, as the emulator saw it.
        self.states: Counter[str] = Counter()

    @property
    def number(self) -> int:
        return self.states.total()

    def kill(self, aim: Aim) -> None:
        """Kills the provider at a moment; another one starts at once.

        The pod is deleted with its process: the kubelet would start it again after
        longer and longer pauses, and a pod's successor starts afresh.
        """
        pod = until("a provider's pod to run", self._running, 60)
        processes = self._cluster.processes(pod)
        if aim.moment not in ("starting", "any", "now"):
            time.sleep(self._dice.uniform(*LIFE))
        is_calm = aim.moment == "at rest"
        with self._storm.pause() if is_calm else nullcontext():
            self._take_aim(aim)
            state = "starting" if aim.moment == "starting" else self._state()
            self._cluster.kill(pod, processes)
        self._last = pod["metadata"]["uid"]
        self.states[state] += 1
        self._journal.note(f"kill {self.number}: {state} ({aim})")

    def _running(self) -> Object | None:
        for pod in self._cluster.pods(PODS):
            statuses = pod["status"].get("containerStatuses", [])
            runs = statuses and all("running" in one["state"] for one in statuses)
            if runs and pod["metadata"]["uid"] != self._last:
                return pod
        return None

    def _take_aim(self, aim: Aim) -> None:
        match aim.moment:
            case "now":
                pass
            case "starting":
                time.sleep(self._dice.uniform(0, 0.5))
            case "any":
                time.sleep(self._dice.uniform(0, 2 * LIFE[1]))
            case "at rest":
                self._await(lambda: self._state(RESTED) == "idle")
                time.sleep(self._dice.uniform(0, 1))
            case "after":
                since = time.time()
                self._storm.provoke(aim.operation)
                self._await(lambda: self._answered(aim.operation, since))
                time.sleep(self._dice.uniform(0, 0.03))
            case _:
                self._aim_at_call(aim)

    def _aim_at_call(self, aim: Aim) -> None:
        is_held = aim.moment == "held"
        fault = self._emulator.fault(
            aim.operation,
            effect="delay-reply" if is_held else "delay",
            seconds=HELD if is_held else BEFORE,
            match=OF_PROVIDER,
        )
        self._storm.provoke(aim.operation)
        if self._await(lambda: self._is_under_way(aim.operation, is_held)):
            time.sleep(self._dice.uniform(0, BEFORE / 2))
        self._emulator.end_fault(fault)

    def _await(self, seen: Callable[[], bool]) -> bool:
        """Whether the moment came; the kill does not wait for ever."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if seen():
                return True
            time.sleep(0.01)
        return False

    def _answered(self, operation: str, since: float) -> bool:
        recent = self._emulator.latest(time.time() - since)
        return any(call["operation"] == operation for call in recent)

    def _is_under_way(self, operation: str, is_carried_out: bool) -> bool:
        return any(
            call["operation"] == operation and call["carriedOut"] == is_carried_out
            for call in self._emulator.under_way()
        )

    def _state(self, lately: float = JUST) -> str:
        """What the provider does, by the calls that it is in or just came from."""
        under_way = [c for c in self._emulator.under_way() if c["service"] == "ec2"]
        for call in under_way:
            if call["operation"] == "CreateFleet":
                return "launched, no answer" if call["carriedOut"] else "launching"
        just = [c for c in self._emulator.latest(lately) if c["service"] == "ec2"]
        operations = [c["operation"] for c in under_way + just]
        if "CreateFleet" in operations:
            return "launched, just answered"
        if "TerminateInstances" in operations:
            return "terminating"
        changes = [one for one in operations if not one.startswith(_READS)]
        if any(one.startswith("Delete") for one in changes):
            return "clearing up"
        return "preparing" if changes else "idle"
