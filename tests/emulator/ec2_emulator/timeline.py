"""What is going to happen, and when: state transitions, events, forgetting."""

import heapq
import itertools
from collections.abc import Callable

from .clock import Clock


class Timeline:
    """A queue of callbacks by due time.

    Nothing runs by itself: `settle` runs what is due, in order of time, before every
    answer, so that no reader ever sees a state that should have passed already.
    Not synchronized; the emulator's lock guards it.
    """

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Callable[[float], None]]] = []
        self._order = itertools.count()

    def at(self, due: float, happen: Callable[[float], None]) -> None:
        """Calls `happen(due)` once `due` (seconds since the epoch) has passed."""
        heapq.heappush(self._due, (due, next(self._order), happen))

    def next_due(self) -> float | None:
        return self._due[0][0] if self._due else None

    def settle(self, clock: Clock) -> None:
        while self._due and clock.reached(self._due[0][0]):
            due, _, happen = heapq.heappop(self._due)
            happen(due)

    def clear(self) -> None:
        self._due.clear()
