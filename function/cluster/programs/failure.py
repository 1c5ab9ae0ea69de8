"""What ends a container, told to whoever reads the workspace's condition."""

from __future__ import annotations

import sys
from collections.abc import Callable

TERMINATION_LOG = "/dev/termination-log"
# The kubelet reads no more of it.
LIMIT = 4096


class Failure(Exception):
    """Its text names the object, what is wrong with it, and the next step."""


def reported(program: Callable[[], int], log: str = TERMINATION_LOG) -> int:
    """Runs a container's program; a failure becomes its termination message."""
    try:
        return program()
    except Failure as failure:
        message = f"error: {failure}"
    print(message, file=sys.stderr, flush=True)
    try:
        with open(log, "w", encoding="utf-8") as file:
            file.write(message[:LIMIT])
    except OSError as error:
        # The kubelet takes the end of the container's output instead.
        print(f"{log}: {error}", file=sys.stderr, flush=True)
    return 1
