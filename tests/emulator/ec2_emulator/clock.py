"""The one clock of the emulator, which a test may push forward."""

import time
from collections.abc import Callable
from datetime import UTC, datetime


class Clock:
    """Seconds since the epoch, plus whatever it was advanced by."""

    def __init__(self, source: Callable[[], float] = time.time) -> None:
        self._source = source
        self._ahead = 0.0

    def seconds(self) -> float:
        return self._source() + self._ahead

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds(), UTC)

    def advance(self, seconds: float) -> None:
        self._ahead += seconds

    def rewind(self) -> None:
        self._ahead = 0.0
