"""The lives of many workspaces, by one watch: who lists a thousand of them every second
does as much work as what stops them."""

import subprocess
from datetime import datetime
from threading import Thread
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
    """What the claims of a namespace say of their lives, as soon as they say it."""

    def __init__(self, namespace: str) -> None:
        self._seen: dict[str, dict[str, datetime]] = {}
        self._watch = subprocess.Popen(
            [
                "kubectl",
                "get",
                CLAIMS,
                "-n",
                namespace,
                "--watch",
                "-o",
                f"jsonpath={LINE}",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
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
        self._watch.kill()
        self._reader.join()

    def times(self, field: str) -> dict[str, datetime]:
        """The time in a field, of those that have one."""
        assert self._watch.poll() is None, "the watch of the claims ended"
        seen = list(self._seen.items())
        return {name: times[field] for name, times in seen if field in times}

    def _read(self) -> None:
        assert self._watch.stdout is not None
        for line in self._watch.stdout:
            name, *said = line.rstrip("\n").split("|")
            times = zip(FIELDS, said, strict=True)
            self._seen[name] = {field: moment(time) for field, time in times if time}
