"""Scheduled actions: state transitions, events, removals."""

import heapq
import itertools
from collections.abc import Callable

from .clock import Clock


class Timeline:
    """A queue of callbacks by due time.

    Nothing runs by itself. Before every answer, `settle` runs the due callbacks in
    order of time, so that no reader sees an outdated state.
    The emulator's lock must be held for every use.
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
