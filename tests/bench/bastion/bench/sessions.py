"""Sessions that stay open: people who type, and people who do nothing."""

import os
import select
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

# How many sessions are opened at a time.
TOGETHER = 4
# How long a session or an echo may take, in seconds.
LONGEST = 60.0
# The keys that a person types, a second.
KEYS = 2.0


class Session:
    """A process of ssh with a terminal in a workspace, which echoes what is typed."""

    def __init__(self, line: list[str]) -> None:
        self.line = line
        self.process = subprocess.Popen(
            line,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.keys = self.process.stdin.fileno()
        self.screen = self.process.stdout.fileno()

    def echo(self, key: bytes = b"x") -> float:
        """Types a key and waits for its echo. Returns the time in seconds."""
        began = time.perf_counter()
        os.write(self.keys, key)
        self.shown()
        return time.perf_counter() - began

    def shown(self) -> bytes:
        """What is shown next."""
        ready, _, _ = select.select([self.screen], [], [], LONGEST)
        seen = os.read(self.screen, 4096) if ready else b""
        if not seen:
            raise RuntimeError(f"{self.line}: it shows nothing")
        return seen

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def opened(lines: list[list[str]]) -> Iterator[list[Session]]:
    """Sessions in which a key was typed and shown."""
    with ExitStack() as closing:

        def open_one(line: list[str]) -> Session:
            session = Session(line)
            closing.callback(session.close)
            session.echo()
            return session

        with ThreadPoolExecutor(TOGETHER) as pool:
            sessions = list(pool.map(open_one, lines))
        yield sessions


class Typing:
    """People who type at the same pace, one after the other."""

    def __init__(self, sessions: list[Session]) -> None:
        self.sessions = sessions
        self.typed = 0
        self.seen = 0

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """They type meanwhile. At the end, all that was typed must have been shown."""
        stop = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            typing = pool.submit(self._type, stop.is_set)
            try:
                yield
            finally:
                stop.set()
                typing.result()
        while self.seen < self.typed:
            screens = [one.screen for one in self.sessions]
            ready, _, _ = select.select(screens, [], [], LONGEST)
            if not ready:
                raise RuntimeError(f"{self.typed} keys typed, {self.seen} shown")
            self.seen += sum(len(os.read(screen, 4096)) for screen in ready)

    def _type(self, is_over: Callable[[], bool]) -> None:
        pause = 1 / (KEYS * len(self.sessions))
        due = time.perf_counter()
        while True:
            for session in self.sessions:
                if is_over():
                    return
                os.write(session.keys, b"x")
                self.typed += 1
                if select.select([session.screen], [], [], 0)[0]:
                    self.seen += len(os.read(session.screen, 4096))
                due += pause
                time.sleep(max(0.0, due - time.perf_counter()))
