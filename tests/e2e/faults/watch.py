"""Checks the account during the whole run: no error may occur even for a moment."""

from collections import Counter
from threading import Event, Lock, Thread

from environment.ec2 import Instance, tags

from .account import POOL_UID, Account
from .fleet import Fleet
from .journal import Journal
from .strangers import Strangers

# Seconds between two checks.
PERIOD = 0.3


class Warned:
    """The instances with an interruption warning of AWS. The provider launches the
    replacement at once, even beyond the pool's maximum (docs/pools.md). The queue of one
    configuration tells the pools of every configuration (docs/operate.md)."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ids: set[str] = set()

    def add(self, id_: str) -> None:
        with self._lock:
            self._ids.add(id_)

    def __contains__(self, id_: object) -> bool:
        with self._lock:
            return id_ in self._ids


class Watch:
    def __init__(
        self,
        account: Account,
        fleet: Fleet,
        strangers: Strangers,
        warned: Warned,
        journal: Journal,
    ) -> None:
        self._account = account
        self._fleet = fleet
        self._strangers = strangers
        self._warned = warned
        self._journal = journal
        self._over = Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self._failures: list[BaseException] = []
        self.looks = 0
        # By UID, the pools that had too many instances; by id, the instances of others
        # that changed.
        self.doubled: dict[str, str] = {}
        self.touched: set[str] = set()

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()
        if self._failures:
            raise self._failures[0]

    def look(self) -> None:
        live = self._account.live()
        for uid, wrong in self._too_many(live).items():
            if uid not in self.doubled:
                self._journal.note(f"VIOLATION: {wrong}")
            self.doubled.setdefault(uid, wrong)
        for id_ in self._strangers.changes(live):
            if id_ not in self.touched:
                self._journal.note(f"VIOLATION: somebody else's {id_} changed")
            self.touched.add(id_)
        self.looks += 1

    def _too_many(self, live: list[Instance]) -> dict[str, str]:
        ours = [one for one in live if self._account.is_ours(one)]
        number = Counter(tags(one).get(POOL_UID) for one in ours)
        wrong = {}
        for pool in self._fleet.every():
            of_pool = [one for one in ours if tags(one).get(POOL_UID) == pool.uid]
            going = [one for one in of_pool if one["InstanceId"] in self._warned]
            most = pool.ceiling + len(going)
            if number[pool.uid] > most:
                ids = [one["InstanceId"] for one in of_pool]
                wrong[pool.uid] = f"{pool.name} has {ids}, and may have {most}"
        return wrong

    def _watch(self) -> None:
        try:
            while not self._over.wait(PERIOD):
                self.look()
        except BaseException as failure:
            self._failures.append(failure)
            raise
