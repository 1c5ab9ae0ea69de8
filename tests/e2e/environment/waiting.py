"""Waiting for conditions, never for time to pass."""

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
    """The first answer of `look` that is neither None nor False.

    A failure tells what there is `instead`.
    """
    deadline = time.monotonic() + seconds
    while True:
        seen = look()
        if seen is not None and seen is not False:
            return seen
        if time.monotonic() > deadline:
            seen_instead = "" if instead is None else f"; instead: {instead()}"
            raise AssertionError(f"waited {seconds:.0f} s for {what}{seen_instead}")
        time.sleep(period)
