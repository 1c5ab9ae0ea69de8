"""The one clock of the emulator, which a test may stop and push forward."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

# Far below any duration, far above the rounding of seconds since the epoch.
GRAIN = 0.0005


class Clock:
    """Seconds since the epoch, plus whatever it was advanced by."""

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
        """Whether it is that moment or later, as exact as sums of floats are."""
        return self.seconds() >= moment - GRAIN

    def advance(self, seconds: float) -> None:
        self._ahead += seconds

    def stop(self) -> None:
        """Time passes by `advance` only, until `run`."""
        if self._stopped_at is None:
            self._stopped_at = self._source()

    def run(self) -> None:
        """Goes on from where it was stopped."""
        if self._stopped_at is not None:
            self._ahead -= self._source() - self._stopped_at
            self._stopped_at = None

    def reset(self) -> None:
        self._ahead = 0.0
        self._stopped_at = None
