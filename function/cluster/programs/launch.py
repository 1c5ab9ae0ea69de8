"""One command on every node at once, by ssh: its output, its end, no leftovers."""

from __future__ import annotations

import json
import os
import queue
import select
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Union

import places
from gang import Node

SSH = [
    *["ssh", "-T", "-F", str(places.RUN / places.SSH_CONFIG)],
    # A node that vanished is noticed after 15 s.
    *["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"],
    *["-o", "ConnectTimeout=10", "-o", "LogLevel=ERROR"],
]
AGENT = shlex.join(["python3", str(places.SCRIPTS / "node_agent.py")])
# ssh's own exit status when the connection, and not the command, failed.
BROKEN = 255
# For how long nodes may take to end when they were told to: more than an agent's.
PATIENCE = 20.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Say = Callable[[Node, IO[bytes], bytes], None]


@dataclass(frozen=True)
class Job:
    command: Sequence[str]
    # The working folder, on each node.
    folder: str
    # What is set beyond each node's own environment.
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    # The first node that failed, if one did.
    failed: Node | None
    # Its exit status, or 128 and the signal that ended all; 0: all went well.
    status: int
    # Whether a signal to this process ended it.
    signalled: bool
    # Every node's exit status, by index.
    statuses: dict[int, int]

    def why(self) -> str:
        if self.failed is None:
            return "all nodes ended well"
        if self.status == BROKEN:
            return f"the connection to {self.failed.name} broke"
        return f"{self.failed.name} ended with {self.status}"


@dataclass(frozen=True)
class _Ended:
    node: Node
    status: int


@dataclass(frozen=True)
class _Signal:
    number: int


@dataclass(frozen=True)
class _NobodyReads:
    """Whoever read this process's output is gone."""


_Event = Union[_Ended, _Signal, _NobodyReads]


def run(
    nodes: Sequence[Node], job: Job, say: Say | None = None, together: bool = True
) -> Outcome:
    """Runs the job on every node and waits for all. With `together`, the first one
    that fails ends the others."""
    events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
    output = _Output(events, say or prefixed)
    threading.Thread(target=_watch_reader, args=[events], daemon=True).start()
    with _signals(events):
        sessions = [_Session(node, job, output, events) for node in nodes]
        outcome = _Watch(sessions, events, together).outcome()
    output.discard_unread()
    return outcome


def prefixed(node: Node, stream: IO[bytes], line: bytes) -> None:
    stream.write(f"{node.name}: ".encode() + line)
    stream.flush()


class _Watch:
    """What follows from what happens, until every node has ended."""

    def __init__(
        self,
        sessions: Sequence[_Session],
        events: queue.SimpleQueue[_Event],
        together: bool,
    ) -> None:
        self._sessions = {s.node.index: s for s in sessions}
        self._events = events
        self._together = together
        self._statuses: dict[int, int] = {}
        self._failed: _Ended | None = None
        self._signal: int | None = None
        self._deadline: float | None = None

    def outcome(self) -> Outcome:
        while len(self._statuses) < len(self._sessions):
            try:
                event = self._events.get(timeout=self._left())
            except queue.Empty:
                self._kill()
                continue
            if isinstance(event, _Ended):
                self._ended(event)
            elif isinstance(event, _Signal) and self._signal is None:
                self._signal = event.number
                self._each(lambda session: session.order(event.number))
            else:
                self._signal = self._signal or signal.SIGPIPE
                self._each(_Session.hang_up)
        status = self._failed.status if self._failed else 0
        if self._signal is not None:
            status = 128 + self._signal
        failed = self._failed.node if self._failed else None
        return Outcome(failed, status, self._signal is not None, self._statuses)

    def _ended(self, ended: _Ended) -> None:
        self._statuses[ended.node.index] = ended.status
        if ended.status and self._failed is None:
            self._failed = ended
            if self._together:
                self._each(_Session.hang_up)

    def _each(self, do: Callable[[_Session], None]) -> None:
        """For those that still run; from then on the end is awaited."""
        for index, session in self._sessions.items():
            if index not in self._statuses:
                do(session)
        self._deadline = time.monotonic() + PATIENCE

    def _left(self) -> float | None:
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - time.monotonic())

    def _kill(self) -> None:
        self._deadline = None
        for session in self._sessions.values():
            session.kill()


class _Session:
    """ssh to one node, and the job at its other end."""

    def __init__(
        self,
        node: Node,
        job: Job,
        output: _Output,
        events: queue.SimpleQueue[_Event],
    ) -> None:
        self.node = node
        self._process = subprocess.Popen(
            [*SSH, node.host, AGENT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C in a terminal is for this program, which passes it on.
            start_new_session=True,
        )
        asked = {
            "node": node.name,
            "command": list(job.command),
            "folder": job.folder,
            "environment": {**job.environment, "PET_NODE_RANK": str(node.index)},
        }
        self._write(asked)
        threading.Thread(
            target=self._follow, args=[output, events], daemon=True
        ).start()

    def order(self, number: int) -> None:
        self._write({"signal": number})

    def hang_up(self) -> None:
        """Ends the job: its agent sees the end of its input."""
        try:
            self._input.close()
        except BrokenPipeError:
            # ssh has ended; its status is on its way.
            return

    def kill(self) -> None:
        self._process.kill()

    @property
    def _input(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    def _write(self, line: object) -> None:
        try:
            self._input.write(json.dumps(line).encode() + b"\n")
            self._input.flush()
        except (BrokenPipeError, ValueError):
            # ssh has ended, or its input was closed; its status is on its way.
            return

    def _follow(self, output: _Output, events: queue.SimpleQueue[_Event]) -> None:
        stdout, stderr = self._process.stdout, self._process.stderr
        assert stdout is not None and stderr is not None
        others = [self.node, stderr, sys.stderr.buffer]
        errors = threading.Thread(target=output.copy, args=others, daemon=True)
        errors.start()
        output.copy(self.node, stdout, sys.stdout.buffer)
        errors.join()
        status = self._process.wait()
        events.put(_Ended(self.node, status if status >= 0 else 128 - status))


class _Output:
    """Lines of many nodes, each of them whole."""

    def __init__(self, events: queue.SimpleQueue[_Event], say: Say) -> None:
        self._events = events
        self._say = say
        self._lock = threading.Lock()
        self._gone = False

    def copy(self, node: Node, source: IO[bytes], to: IO[bytes]) -> None:
        for line in _lines(source):
            with self._lock:
                self._line(node, to, line)

    def _line(self, node: Node, to: IO[bytes], line: bytes) -> None:
        if self._gone:
            # What comes is read on, so that the nodes can end.
            return
        try:
            self._say(node, to, line)
        except BrokenPipeError:
            self._gone = True
            self._events.put(_NobodyReads())

    def discard_unread(self) -> None:
        """Drops the output that nobody reads. Python would try to write it at its exit, and
        would then end with status 120 (3.13 does so reliably)."""
        if self._gone:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)


def _watch_reader(events: queue.SimpleQueue[_Event]) -> None:
    """Without a terminal, a session that ends sends no signal: the other end of
    standard output is closed, which a run that prints nothing would not notice."""
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError):
        # No file at all, as in a test that captures output.
        return
    poll.poll()
    events.put(_NobodyReads())


def _lines(source: IO[bytes]) -> Iterator[bytes]:
    """Lines with their ends; a progress bar's end is a carriage return."""
    left = b""
    while chunk := source.read1(1 << 16):  # type: ignore[attr-defined]
        *lines, left = (left + chunk).replace(b"\r\n", b"\n").splitlines(
            keepends=True
        ) or [b""]
        if left.endswith((b"\n", b"\r")):
            lines, left = [*lines, left], b""
        yield from lines
    if left:
        yield left + b"\n"


@contextmanager
def _signals(events: queue.SimpleQueue[_Event]) -> Iterator[None]:
    """Signals become events; those that are ignored, as under nohup, stay so."""
    former = {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler in former.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, lambda n, _: events.put(_Signal(n)))
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
