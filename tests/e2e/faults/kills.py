"""SIGKILL to the provider, at random moments and at chosen moments."""

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

# Seconds that the emulator delays a call before EC2 acts. A new provider needs longer
# to repeat the call. EC2 knows a call's token as soon as it receives the call.
BEFORE = 0.8
# Seconds between EC2's action and its answer.
HELD = 3.0
# Seconds that a provider lives before the test waits for the moment to kill it.
LIFE = (0.0, 7.0)
# Seconds that the test waits for this moment.
PATIENCE = 8.0
# Seconds after an answer in which the provider still works on its result.
JUST = 0.3
# A provider that has changed nothing for so many seconds is at rest.
RESTED = 2.0
_READS = ("Describe", "Get", "List")


@dataclass(frozen=True)
class Aim:
    """The moment of a kill. With an operation: `before` EC2 acts, while EC2's answer is
    `held`, or `after` the answer. Without one: `at rest`, while the provider is
    `starting`, at `any` moment, or `now`."""

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
    """`number` aims in random order, in proportion to their weights."""
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
        # How many kills there were, by the provider's work at the kill.
        self.states: Counter[str] = Counter()

    @property
    def number(self) -> int:
        return self.states.total()

    def kill(self, aim: Aim) -> None:
        """Kills the provider at a moment. Kubernetes starts another one at once.

        The test also deletes the pod. In the same pod, the kubelet would restart the
        process after a longer pause each time. A new pod starts without a pause.
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
        """Whether the moment came within PATIENCE."""
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
        """What the provider is doing, by its calls under way and its latest calls."""
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
