"""Programs that run as long as the tests."""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

# How long something may take that takes a moment on an idle machine.
PATIENCE = 60


@contextmanager
def running(
    words: Sequence[str | Path], log: Path, **options: Any
) -> Iterator[subprocess.Popen[str]]:
    """A program, until the block ends. Its output goes into a file.

    The test kills the program at the end, because the portal serves for ten seconds
    more after SIGTERM."""
    with log.open("w") as output:
        process = subprocess.Popen(
            words, stdout=output, stderr=subprocess.STDOUT, text=True, **options
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait(PATIENCE)


def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
    return number


def until(what: str, look: Callable[[], T], seconds: float = PATIENCE) -> T:
    """The first true value of `look`."""
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.05)


def listens(number: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", number)) == 0
