"""Waits for a condition, never for a fixed time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PERIOD = 0.2


def until(
    what: str,
    look: Callable[[], T | None],
    seconds: float = 60,
    period: float = PERIOD,
    instead: Callable[[], object] | None = None,
) -> T:
    """The first result of `look` that is true. An empty list is awaited like None.

    The message of a failure ends with the result of `instead`.
    """
    deadline = time.monotonic() + seconds
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > deadline:
            seen_instead = "" if instead is None else f"; instead: {instead()}"
            raise AssertionError(f"waited {seconds:.0f} s for {what}{seen_instead}")
        time.sleep(period)
