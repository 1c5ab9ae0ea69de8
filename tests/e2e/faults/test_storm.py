"""Fifty kills of the provider during faults of EC2. No resource leaks, no launch is
doubled, no resource of others changes, and every pool becomes as its spec wants.

FAULTS_SEED repeats a run's random choices. FAULTS_KILLS is the number of kills.
"""

import os
import time
from collections.abc import Iterator

import pytest

from environment.cluster import Cluster
from environment.emulator import Emulator
from environment.runtime import arguments
from environment.waiting import until

from .account import Account, doubles
from .calm import unsettled, waits_for_answer
from .fleet import FLEETING, SPECS, Fleet
from .journal import Journal
from .kills import Aim, Kills, deck
from .storm import Storm
from .strangers import Strangers
from .watch import Warned, Watch
from .weather import KINDS, LATE, Weather

KILLS = int(os.environ.get("FAULTS_KILLS", "50"))
SEED = int(os.environ.get("FAULTS_SEED", str(time.time_ns() % 1_000_000_000)))
# The number of kills between two checks.
ROUND = 10
# Seconds from the end of all faults until every pool is as its spec wants. A deleted
# pool whose group EC2 never listed waits a minute for it.
CALM = 90
# The same if a launch got no answer. The provider waits five minutes for EC2 to list
# the instances if the spec has changed, and two minutes if the pool was deleted.
IN_DOUBT = 330


@pytest.fixture(autouse=True)
def every_process_works(cluster: Cluster) -> Iterator[None]:
    """Without leader election a new provider works at once after each kill, also while
    the old one still does."""
    with arguments(cluster, "every-process-works", "--leader-election=false"):
        yield


@pytest.fixture
def journal() -> Journal:
    journal = Journal(SEED)
    journal.note(f"FAULTS_SEED={SEED} FAULTS_KILLS={KILLS}")
    return journal


class Run:
    """The parts of a run, and its checks."""

    def __init__(
        self,
        cluster: Cluster,
        emulator: Emulator,
        account: Account,
        fleet: Fleet,
        strangers: Strangers,
        journal: Journal,
    ) -> None:
        self.emulator, self.account, self.fleet = emulator, account, fleet
        self.strangers, self.journal = strangers, journal
        # Earlier tests leave resources on purpose: pools whose policy is to orphan them.
        self.earlier = set(account.things())
        warned = Warned()
        self.weather = Weather(emulator, journal)
        self.storm = Storm(fleet, account, emulator, self.weather, warned, journal)
        self.watch = Watch(account, fleet, strangers, warned, journal)
        self.kills = Kills(cluster, emulator, self.storm, journal)
        self.calms: list[float] = []

    def settle(self, seconds: float, is_last: bool = False) -> None:
        """Waits until every pool is as its spec wants. Except at the last call, a pool
        may differ if it waits for EC2's answer to a launch."""
        began = time.monotonic()
        left: dict[str, str] = {}

        def settled() -> bool:
            left.clear()
            left.update(unsettled(self.fleet, self.account))
            return not left

        try:
            until("the pools to settle", settled, seconds)
        except AssertionError as error:
            stored = self.fleet.stored()
            in_doubt = all(waits_for_answer(stored.get(uid)) for uid in left)
            if is_last or not in_doubt:
                raise AssertionError(f"FAULTS_SEED={SEED}: {error}: {left}") from None
        self.calms.append(time.monotonic() - began)
        self.journal.note(f"settled after {self.calms[-1]:.1f} s but for {left}")
        if not left:
            self.fleet.settle()

    def leaked(self) -> list[str]:
        pools = self.fleet.stored()
        return self.account.leaks(pools, self.strangers.planted | self.earlier)

    def doubled(self) -> list[str]:
        pools = {pool.uid for pool in self.fleet.every()}
        launched = self.account.launched(pools)
        calls = self.emulator.recorded("CreateFleet")
        return [*self.watch.doubled.values(), *doubles(launched, calls)]

    def touched(self) -> list[str]:
        asked = self.emulator.recorded("TerminateInstances")
        ids = {id_ for call in asked for id_ in call["parameters"]["InstanceIds"]}
        asked_for = sorted(ids & self.strangers.planted)
        return [*self.watch.touched, *self.strangers.changed_things(), *asked_for]

    def check(self) -> None:
        """Fails if the run so far has leaked, doubled or touched a resource."""
        found = {
            "leaked": self.leaked(),
            "doubled": self.doubled(),
            "foreign touched": self.touched(),
        }
        wrong = {kind: what for kind, what in found.items() if what}
        assert not wrong, f"FAULTS_SEED={SEED}: {wrong}"

    def summary(self) -> str:
        pools = {pool.uid for pool in self.fleet.every()}
        ended = [
            id_
            for call in self.emulator.recorded("TerminateInstances")
            if call["code"] in ("OK", "(reply lost)")
            for id_ in call["parameters"]["InstanceIds"]
        ]
        struck = {kind: self.weather.struck[kind] for kind in KINDS}
        parts = {
            "seed": SEED,
            "kills": f"{self.kills.number} {dict(self.kills.states)}",
            "faults": f"{sum(struck.values())} {struck}",
            "pools": len(pools),
            "launches": len(self.account.launched(pools)),
            "terminations": len(set(ended)),
            "leaked": len(self.leaked()),
            "doubled": len(self.doubled()),
            "foreign touched": len(self.touched()),
            "looks": self.watch.looks,
            "settled within": f"{max(self.calms):.0f} s",
            "duration": f"{self.journal.seconds():.0f} s",
        }
        return ", ".join(f"{name} {value}" for name, value in parts.items())


@pytest.fixture
def run(
    cluster: Cluster,
    emulator: Emulator,
    account: Account,
    fleet: Fleet,
    strangers: Strangers,
    journal: Journal,
) -> Iterator[Run]:
    """A run with its pools, and with the resources of others."""
    emulator.forget_calls()
    run = Run(cluster, emulator, account, fleet, strangers, journal)
    for name in SPECS:
        assert fleet.create(name)
    run.settle(CALM, is_last=True)
    for pool in fleet.existing():
        if pool.name in (*FLEETING, "steady"):
            strangers.plant(account.cluster, fleet.namespace, pool.name, pool.uid)
    strangers.settle(max(LATE))
    run.watch.begin()
    yield run
    run.storm.end()
    run.watch.end()
    run.weather.clear()
    for pool in fleet.existing():
        fleet.delete(pool)


def test_nothing_leaks_is_doubled_or_is_touched_in_a_storm(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    aims = deck(KILLS, run.journal.dice("aims"))
    for start in range(0, KILLS, ROUND):
        of_round = aims[start : start + ROUND]
        run.storm.begin()
        for aim in of_round[:-1]:
            run.kills.kill(aim)
        run.storm.end()
        run.weather.clear()
        # A new provider forgets unavailable offerings, which its predecessor would not
        # request for 15 minutes. It also forgets denied launches.
        run.kills.kill(Aim("now"))
        run.settle(CALM)
        run.check()
    run.settle(IN_DOUBT, is_last=True)
    run.check()
    for pool in run.fleet.existing():
        run.fleet.delete(pool)
    run.settle(CALM, is_last=True)
    run.watch.end()
    run.check()
    with capsys.disabled():
        print(f"\n{run.summary()}")
