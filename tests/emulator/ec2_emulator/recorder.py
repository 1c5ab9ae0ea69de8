"""Records the calls of the emulator, so that tests can check which calls were made."""

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Any

from .calls import Call

# Enough for a long test. The recorder drops older calls, but keeps their counts.
REMEMBERED_CALLS = 20_000


@dataclass(frozen=True)
class Answered:
    """A call and its answer. `code` is "OK" or the error's code.

    `account` is the account whose credentials signed the call, or None without a
    signature. `cpu_milliseconds` is the processor time of the answer, which does not
    depend on the load of the machine.
    """

    seconds: float
    call: Call
    account: str | None
    status: int
    code: str
    milliseconds: float
    cpu_milliseconds: float


@dataclass
class UnderWay:
    """A call without an answer yet. `carried_out` says whether it took effect."""

    seconds: float
    call: Call
    carried_out: bool = False


class Recorder:
    def __init__(self) -> None:
        self._lock = Lock()
        self._calls: deque[Answered] = deque(maxlen=REMEMBERED_CALLS)
        self._counts: Counter[str] = Counter()
        self._under_way: list[UnderWay] = []

    @contextmanager
    def under_way(self, seconds: float, call: Call) -> Iterator[UnderWay]:
        """Lists a call as under way until it is answered."""
        begun = UnderWay(seconds, call)
        with self._lock:
            self._under_way.append(begun)
        try:
            yield begun
        finally:
            with self._lock:
                self._under_way = [o for o in self._under_way if o is not begun]

    def add(self, answered: Answered) -> None:
        with self._lock:
            self._calls.append(answered)
            self._counts[answered.call.operation] += 1

    def clear(self) -> None:
        with self._lock:
            self._calls.clear()
            self._counts.clear()

    def under_way_as_json(self) -> dict[str, Any]:
        with self._lock:
            begun = list(self._under_way)
        return {
            "calls": [
                {
                    "time": one.seconds,
                    "service": one.call.service,
                    "operation": one.call.operation,
                    "parameters": _plain(one.call.parameters),
                    "carriedOut": one.carried_out,
                }
                for one in begun
            ]
        }

    def as_json(
        self, since: float, operation: str | None, access_key: str | None = None
    ) -> dict[str, Any]:
        """The calls answered at `since` (epoch seconds) or later, and their counts.

        With `since` 0 and nothing else, the counts include dropped calls.
        """
        with self._lock:
            selected = [
                one
                for one in self._calls
                if one.seconds >= since
                and (operation is None or one.call.operation == operation)
                and (access_key is None or one.call.access_key == access_key)
            ]
            counts = (
                Counter(one.call.operation for one in selected)
                if since > 0 or operation is not None or access_key is not None
                else Counter(self._counts)
            )
        return {
            "counts": dict(sorted(counts.items())),
            "calls": [_as_json(one) for one in selected],
        }


def _as_json(answered: Answered) -> dict[str, Any]:
    return {
        "time": answered.seconds,
        "service": answered.call.service,
        "operation": answered.call.operation,
        "region": answered.call.region,
        "account": answered.account,
        "parameters": _plain(answered.call.parameters),
        "attempt": answered.call.attempt,
        "status": answered.status,
        "code": answered.code,
        "milliseconds": round(answered.milliseconds, 1),
        "cpuMilliseconds": round(answered.cpu_milliseconds, 1),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value
