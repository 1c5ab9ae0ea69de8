"""Sessions that people keep open, by the OpenSSH client of this machine."""

import os
import select
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from bastion.door import PORT, Door, Visitor

# How long a person waits for an address, in seconds.
CONNECT = 5
# How long a person waits for an answer, in seconds.
ANSWER = 60.0


@dataclass(frozen=True)
class Client(Visitor):
    """A visitor who soon leaves an address that does not answer."""

    port: int = PORT

    def options(self) -> list[str]:
        # ssh takes the first value of an option.
        first = ["-o", f"Port={self.port}", "-o", f"ConnectTimeout={CONNECT}"]
        return [*first, *super().options()]


def known_everywhere(door: Door) -> Path:
    """The host key of the bastion, at every address that a replica may get."""
    key = " ".join(door.known_hosts().read_text().split()[1:3])
    known = door.folder / "known_everywhere"
    known.write_text(f"[*]:{PORT} {key}\n10.96.* {key}\n")
    return known


@dataclass(frozen=True)
class Kind:
    """What a person does at the bastion."""

    name: str
    # The command line for an address of the bastion.
    line: Callable[[Client], list[str]]
    # The answer to a word that the person sends.
    answer: Callable[[str], str]


# A terminal in a workspace that the bastion's own ssh leads to. It echoes what is typed, so
# the answer is in capitals.
CAPITALS = ("sed", "-u", "y/word/WORD/")
TERMINAL = Kind(
    "terminal",
    lambda client: client.line("ssh", "work", "--", *CAPITALS, flags=("-tt",)),
    str.upper,
)
# Behind the login, a word that is no command is repeated in quotes.
PROMPT = Kind("prompt", lambda client: client.line(), "'{}'".format)


def stream(workspace: str, known_hosts: Path) -> Kind:
    """A session in a workspace, through `connect`. There, `cat` repeats each word."""
    return Kind(
        "stream",
        lambda client: [*client.inside(workspace, known_hosts), "cat"],
        "{}\n".format,
    )


class Held:
    """A session of one person, who enters again when it has ended."""

    _words = count()

    def __init__(self, kind: Kind, at: Callable[[int], Client]) -> None:
        """`at` gives the client for a replica."""
        self.kind = kind
        self.at = at
        self.replica = 0
        self.entered = 0
        self.process: subprocess.Popen[bytes] | None = None

    def enter(self, replicas: Sequence[int]) -> bool:
        """Tries the replicas in this order. Returns whether one let the person in."""
        for replica in replicas:
            self.close()
            self.process = subprocess.Popen(
                self.kind.line(self.at(replica)),
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={"PATH": os.environ["PATH"]},
            )
            self.replica = replica
            if self.answers():
                self.entered += 1
                return True
        return False

    def answers(self) -> bool:
        """Whether the session answers to a word that was not said before."""
        word = f"word-{next(self._words)}"
        stdin = self._running().stdin
        assert stdin is not None
        try:
            stdin.write(f"{word}\n".encode())
        except BrokenPipeError:
            return False
        return self.shows(self.kind.answer(word))

    def shows(self, text: str) -> bool:
        """Whether the session shows a text now or soon."""
        stdout = self._running().stdout
        assert stdout is not None
        screen, wanted = stdout.fileno(), text.encode()
        seen, deadline = b"", time.monotonic() + ANSWER
        while wanted not in seen:
            left = max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([screen], [], [], left)
            more = os.read(screen, 4096) if ready else b""
            if not more:
                shown = seen.decode(errors="replace")
                print(f"{self.kind.name} at replica {self.replica}: {shown}")
                return False
            seen += more
        return True

    def wait_for_end(self, seconds: float) -> None:
        self._running().wait(seconds)

    def close(self) -> None:
        if self.process:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def _running(self) -> subprocess.Popen[bytes]:
        assert self.process is not None, "nobody has entered"
        return self.process
