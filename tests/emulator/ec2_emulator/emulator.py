"""The state of the emulator: its time, settings, faults and regions."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .boot.hypervisor import Base, Hypervisor
from .clock import Clock
from .ec2.endpoint import Ec2Endpoint
from .ec2.region import Region
from .faults import Faults
from .iam import Policies
from .recorder import Recorder
from .seams import Backends, attach
from .settings import Settings
from .throttle import Throttle
from .timeline import Timeline

log = logging.getLogger("ec2_emulator")


class NoMachines(RuntimeError):
    """Instances cannot boot. The message says what is missing."""


@dataclass(frozen=True)
class Place:
    """The folder and the network for machines, if the emulator may have some."""

    folder: Path
    # The network of the machines' public addresses. The emulator has the first one.
    network: str


class Emulator:
    """All state of one emulator process.

    `held` locks all state except faults, recorder, throttle and policies, which have
    own locks.
    """

    def __init__(
        self, settings: Settings, clock: Clock, place: Place | None = None
    ) -> None:
        self.clock = clock
        self.machines: Hypervisor | None = None
        # The application that answers the calls of machines.
        self.app: Any = None
        self._place = place
        self.settings = settings
        self.timeline = Timeline()
        self.faults = Faults()
        self.throttle = Throttle()
        self.recorder = Recorder()
        self.policies = Policies()
        self._defaults = settings
        self._backends = Backends()
        self._regions: dict[tuple[str, str], Region] = {}
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        attach(type("BoundEc2Endpoint", (Ec2Endpoint,), {"world": self}))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Exclusive use of the state, after all due events have happened."""
        with self._lock:
            self.timeline.settle(self.clock)
            yield
            self._changed.notify_all()

    def provide_machines(self, base: Base) -> None:
        """Gives machines to all later instances of the image that boots."""
        place = self._place
        if place is None:
            raise NoMachines(
                "this emulator was started without --machines and --machine-network"
            )
        with self._lock:
            if self.machines is None:
                self.machines = Hypervisor(
                    self, self.app, base, place.folder, place.network
                )

    def region(self, account: str, name: str) -> Region:
        with self._lock:
            key = (account, name)
            if key not in self._regions:
                self._regions[key] = Region(self, account, name, self._backends)
            return self._regions[key]

    def find_instance(self, instance_id: str) -> Any:
        """The instance of any account and region, or None."""
        for region in self._regions.values():
            if instance_id in region.instances:
                return region.instances[instance_id]
        return None

    def reset(self) -> None:
        """Resets all state to that of a new emulator, except calls under way. Running
        machines end. The emulator can still create new ones."""
        if self.machines is not None:
            self.machines.clear()
        with self._lock:
            self._backends.reset()
            self._regions.clear()
            self.timeline.clear()
            self.settings = self._defaults
            self.clock.reset()
        self.faults.clear()
        self.throttle.clear()
        self.recorder.clear()
        self.policies.clear()

    def keep_time(self) -> None:
        """Makes due events happen without a call. Never returns.

        Answers do not depend on it. Queues do, because they receive events.
        """
        with self._lock:
            while True:
                due = self.timeline.next_due()
                wait = None if due is None else due - self.clock.seconds()
                if wait is None or wait > 0:
                    self._changed.wait(wait)
                try:
                    self.timeline.settle(self.clock)
                except Exception:
                    # A failed event must not prevent the others.
                    log.exception("what was due failed")
