"""The program that makes the load (`../src`)."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster import ROOT

PROGRAM = os.environ.get("PORTAL_LOAD", str(ROOT / "target/release/portal-load"))

Answer = dict[str, Any]


def ran(*words: str | Path) -> Answer:
    """Runs a command to its end."""
    done = subprocess.run(
        [PROGRAM, *words], check=True, stdout=subprocess.PIPE, text=True
    )
    answer: Answer = json.loads(done.stdout)
    return answer


class Browsers:
    """Browsers with an open page."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def do(self, what: str, **how: int) -> Answer:
        """Does something, and waits for what comes of it."""
        assert self.process.stdin is not None
        print(json.dumps({"do": what, **how}), file=self.process.stdin, flush=True)
        return self.answer()

    def answer(self) -> Answer:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the browsers' program has ended"
        answer: Answer = json.loads(line)
        return answer


@contextmanager
def browsers(*words: str | Path) -> Iterator[Browsers]:
    """The browsers of a command, until the block ends."""
    process = subprocess.Popen(
        [PROGRAM, "browsers", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Browsers(process)
    finally:
        process.kill()
        process.wait()
