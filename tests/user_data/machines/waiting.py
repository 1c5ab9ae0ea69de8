"""Waits for a condition, never for a fixed time."""

import time
from collections.abc import Callable

PERIOD = 0.1


def until(what: str, holds: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:.0f} s for {what}")
        time.sleep(PERIOD)
