"""The lifecycle times of many claims, read by one watch. Listing a thousand claims
every second would cost as much work as stopping them."""

import os
import select
import subprocess
from datetime import datetime
from threading import Event, Thread
from types import TracebackType
from typing import Self

from environment.cluster import CLAIMS
from lifecycle.life import moment

FIELDS = ("startedAt", "stopsAt", "stoppedAt")
LINE = (
    "|".join(["{.metadata.name}", *(f"{{.status.lifecycle.{f}}}" for f in FIELDS)])
    + '{"\\n"}'
)


class Following:
    """The lifecycle times of a namespace's claims, as soon as their status has them."""

    def __init__(self, namespace: str) -> None:
        self._command = ["kubectl", "get", CLAIMS, "-n", namespace, "--watch"]
        self._seen: dict[str, dict[str, datetime]] = {}
        self._is_over = Event()
        self._reader = Thread(target=self._read)

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._reader.join()

    def times(self, field: str) -> dict[str, datetime]:
        """The time in a field, by claim. Claims without it are left out."""
        assert self._reader.is_alive(), "the watch of the claims ended"
        seen = list(self._seen.items())
        return {name: times[field] for name, times in seen if field in times}

    def _read(self) -> None:
        # The API server ends a watch that is too slow, and kubectl then ends. A new
        # watch begins with a list of all claims.
        while not self._is_over.is_set():
            command = [*self._command, "-o", f"jsonpath={LINE}"]
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            ) as watch:
                self._follow(watch)

    def _follow(self, watch: "subprocess.Popen[bytes]") -> None:
        assert watch.stdout is not None
        buffered = b""
        while not self._is_over.is_set():
            ready, _, _ = select.select([watch.stdout], [], [], 0.5)
            if not ready:
                continue
            read = os.read(watch.stdout.fileno(), 1 << 16)
            if not read:
                break
            *lines, buffered = (buffered + read).split(b"\n")
            for line in lines:
                self._note(line.decode())
        watch.kill()

    def _note(self, line: str) -> None:
        name, *said = line.split("|")
        times = zip(FIELDS, said, strict=True)
        self._seen[name] = {field: moment(time) for field, time in times if time}
