"""What a benchmark does now, on standard error."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from promises.machine import busy

# The most that others may use of the machine without a warning.
BUSY = 0.1


def warn() -> None:
    """Warns if others use the machine."""
    share = busy()
    if share > BUSY:
        print(
            f"warning: others use {share:.0%} of this machine: its figures are worse and "
            "less steady than those of an idle one",
            file=sys.stderr,
        )


@contextmanager
def step(what: str) -> Iterator[None]:
    """Says what is done, and how long it took."""
    print(f"{what} …", file=sys.stderr, flush=True)
    began = time.monotonic()
    yield
    print(f"{what}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
