"""Random actions of people and AWS on the pools, during the kills."""

from threading import Event, Lock, Thread

from environment.ec2 import tags
from environment.emulator import Emulator

from .account import POOL_UID, Account
from .fleet import FLEETING, Fleet, Wanted, another_size, another_template
from .journal import Journal
from .watch import Warned
from .weather import Weather

# Seconds between two actions.
PACE = (0.1, 1.2)
# Seconds between an interruption's warning and the end of the instance.
NOTICES = (0, 3, 8)


class Storm:
    """Acts in a thread of its own until `end`."""

    def __init__(
        self,
        fleet: Fleet,
        account: Account,
        emulator: Emulator,
        weather: Weather,
        warned: Warned,
        journal: Journal,
    ) -> None:
        self._fleet = fleet
        self._account = account
        self._emulator = emulator
        self._weather = weather
        self._warned = warned
        self._journal = journal
        self._dice = journal.dice("storm")
        self._turn = Lock()
        self._over = Event()
        self._thread: Thread | None = None
        self._failures: list[BaseException] = []

    def begin(self) -> None:
        self._over.clear()
        self._weather.haze()
        self._thread = Thread(target=self._blow, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Waits until the last action is complete."""
        self._over.set()
        if self._thread:
            self._thread.join()
        if self._failures:
            raise self._failures[0]

    def pause(self) -> Lock:
        """A lock. No action takes place while it is held."""
        return self._turn

    def provoke(self, operation: str) -> None:
        """Acts so that the provider usually calls `operation`."""
        with self._turn:
            if operation == "CreateFleet":
                self._terminate()
            elif operation == "TerminateInstances":
                self._shrink()
            elif operation.endswith("LaunchTemplate"):
                self._edit_template()
            else:
                self._come_or_go()

    def _blow(self) -> None:
        happenings = {
            self._weather.change: 45,
            self._weather.haze: 8,
            self._resize: 20,
            self._edit_template: 10,
            self._come_or_go: 14,
            self._terminate: 10,
            self._interrupt: 10,
            self._recommend: 4,
        }
        actions, weights = list(happenings), list(happenings.values())
        try:
            while not self._over.wait(self._dice.uniform(*PACE)):
                with self._turn:
                    self._dice.choices(actions, weights)[0]()
        except BaseException as failure:
            self._failures.append(failure)
            raise

    def _pool(self) -> Wanted | None:
        pools = self._fleet.existing()
        return self._dice.choice(pools) if pools else None

    def _resize(self) -> None:
        if pool := self._pool():
            size = another_size(pool, self._dice)
            self._journal.note(f"{pool.name} is resized to {size}")
            self._fleet.edit(pool, size=size)

    def _shrink(self) -> None:
        for pool in self._fleet.existing():
            size = pool.spec["size"]
            if pool.target > size["minimum"]:
                self._journal.note(f"{pool.name} shrinks to {size['minimum']}")
                self._fleet.edit(pool, size={**size, "idle": 0})
                return
        self._resize()

    def _edit_template(self) -> None:
        if pool := self._pool():
            changes = another_template(pool, self._dice)
            self._journal.note(f"{pool.name} is edited: {changes}")
            self._fleet.edit(pool, **changes)

    def _come_or_go(self) -> None:
        name = self._dice.choice(FLEETING)
        for pool in self._fleet.existing():
            if pool.name == name:
                self._journal.note(f"{name} {pool.uid} is deleted")
                self._fleet.delete(pool)
                return
        if self._fleet.create(name):
            self._journal.note(f"{name} is created")

    def _terminate(self) -> None:
        if id_ := self._instance():
            self._journal.note(f"{id_} is terminated from outside")
            self._emulator.terminate(id_)

    def _interrupt(self) -> None:
        id_ = self._instance(spot=True)
        if id_ is None:
            return
        notice = self._dice.choice(NOTICES)
        self._journal.note(f"{id_} is taken back in {notice} s")
        self._warned.add(id_)
        self._emulator.interrupt(id_, notice)

    def _recommend(self) -> None:
        if id_ := self._instance(spot=True):
            self._journal.note(f"AWS recommends to rebalance {id_}")
            self._emulator.rebalance(id_)

    def _instance(self, spot: bool = False) -> str | None:
        pools = {pool.uid for pool in self._fleet.every()}
        ids = [
            one["InstanceId"]
            for one in self._account.live()
            if self._account.is_ours(one)
            and tags(one).get(POOL_UID) in pools
            and (not spot or one.get("InstanceLifecycle") == "spot")
        ]
        return self._dice.choice(sorted(ids)) if ids else None
