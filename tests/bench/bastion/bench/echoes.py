"""How long a person waits for the echo of a key."""

import time
from contextlib import ExitStack

from bench.connects import forwarded
from bench.sessions import opened
from bench.stage import Stage
from bench.ways import Way

# Between two keys, in seconds. Nobody types faster for long.
PAUSE = 0.01


def in_turns(stage: Stage, keys: int) -> dict[Way, list[float]]:
    """Types into the same workspace by all ways."""
    with ExitStack() as open_:
        flags = open_.enter_context(forwarded(stage, 0))
        lines = [
            terminal(stage, way, 0, flags if way is Way.FORWARD else ()) for way in Way
        ]
        sessions = dict(zip(Way, open_.enter_context(opened(lines)), strict=True))
        took: dict[Way, list[float]] = {way: [] for way in Way}
        for _ in range(keys):
            for way, session in sessions.items():
                took[way].append(session.echo())
                time.sleep(PAUSE)
        return took


def terminal(
    stage: Stage, way: Way, number: int, flags: tuple[str, ...] = ()
) -> list[str]:
    """A command line whose terminal in the workspace echoes each key."""
    return stage.line(way, number, "cat", flags=("-tt", *flags))
