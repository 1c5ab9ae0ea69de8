"""Calls to the API server, in its audit log."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

# A user, a verb and a resource.
Call = tuple[str, str, str]


class Log:
    """An audit log, from this moment on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.begins = path.stat().st_size

    def calls(self) -> Counter[Call]:
        """The calls since the log was opened."""
        with self.path.open() as lines:
            lines.seek(self.begins)
            return counted(lines)


def counted(lines: Iterable[str]) -> Counter[Call]:
    """Each call once: the log has a line when a watch begins, and one when it ends."""
    found: Counter[Call] = Counter()
    for line in lines:
        event = json.loads(line)
        if event["stage"] != "ResponseComplete":
            continue
        resource = event.get("objectRef", {}).get("resource", "")
        found[event["user"]["username"], event["verb"], resource] += 1
    return found


def of(calls: Counter[Call], user: str, *verbs: str) -> int:
    """The calls of a user with one of these verbs; without verbs, all but watches. A watch is renewed when its
    time is over, whatever people do."""
    return sum(
        count
        for (who, verb, _), count in calls.items()
        if who == user and (verb in verbs if verbs else verb != "watch")
    )
