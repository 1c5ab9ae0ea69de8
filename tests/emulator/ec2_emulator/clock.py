"""The clock of the emulator. A test may stop it and advance it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

# Seconds. Much less than any duration, and much more than the rounding error of seconds
# since the epoch.
GRAIN = 0.0005


class Clock:
    """Seconds since the epoch, plus the time by which the clock was advanced."""

    def __init__(self, source: Callable[[], float] = time.time) -> None:
        self._source = source
        self._ahead = 0.0
        self._stopped_at: float | None = None

    def seconds(self) -> float:
        if self._stopped_at is not None:
            return self._stopped_at + self._ahead
        return self._source() + self._ahead

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds(), UTC)

    def reached(self, moment: float) -> bool:
        """Whether it is that moment or later. Allows for rounding errors of floats."""
        return self.seconds() >= moment - GRAIN

    def advance(self, seconds: float) -> None:
        self._ahead += seconds

    def stop(self) -> None:
        """Stops the clock. Until `run`, only `advance` makes time pass."""
        if self._stopped_at is None:
            self._stopped_at = self._source()

    def run(self) -> None:
        """Continues from the time at which the clock stopped."""
        if self._stopped_at is not None:
            self._ahead -= self._source() - self._stopped_at
            self._stopped_at = None

    def reset(self) -> None:
        self._ahead = 0.0
        self._stopped_at = None
