"""A thousand open pages: what they take, what they see and when, and what happens if the portal is killed."""

import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass

from bench import calls, load, process
from bench.load import Answer, Browsers
from bench.stage import PORTAL_USER, Stage

# How long the portal is left alone before its memory is measured.
SETTLED = 3.0
# How many changes the portal's ring has (`CHANGES` in portal/src/mirror.rs), and some more.
BEYOND_THE_RING = 4200
PER_SECOND = 10
STALLED = 50


@dataclass(frozen=True)
class Rest:
    """Pages that are open while nothing changes."""

    seconds: float
    # Calls of the portal to the API server.
    lists: int
    # The share of one processor.
    busy: float


@dataclass(frozen=True)
class Pages:
    count: int
    # Resident bytes without pages, with all of them, and the most that was seen with them.
    alone: int
    full: int
    most: int
    opened: Answer
    rest: Rest
    # Changes with all pages, with some that do not read, and without those again.
    quiet: Answer
    stalled: Answer
    after: Answer
    # What the pages that did not read were told.
    resumed: Answer
    flood: Answer
    fall: Answer


class Measuring:
    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.sizes: list[int] = []

    def resident(self, portal: subprocess.Popen[str]) -> int:
        time.sleep(SETTLED)
        size = process.resident(portal.pid)
        self.sizes.append(size)
        return size

    def rest(self, portal: subprocess.Popen[str], seconds: int) -> Rest:
        log = calls.Log(self.stage.cluster.audit)
        used, began = process.processor_seconds(portal.pid), time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        busy = (process.processor_seconds(portal.pid) - used) / took
        return Rest(took, calls.of(log.calls(), PORTAL_USER, "list"), busy)


def measure(stage: Stage, rest: int, seconds: int) -> Pages:
    measuring = Measuring(stage)
    words = (
        stage.places.portal,
        *("--authority", stage.authority, "--sessions", stage.watchers),
        *("--kubeconfig", stage.cluster.kubeconfig),
    )
    with ExitStack() as stack:
        portal = stack.enter_context(stage.portal())
        alone = measuring.resident(portal)
        browsers = stack.enter_context(load.browsers(*words))
        opened = browsers.do("open")
        full = measuring.resident(portal)
        measuring.sizes.remove(alone)
        at_rest = measuring.rest(portal, rest)
        measuring.resident(portal)
        quiet = changed(browsers, seconds)
        browsers.do("stall", count=STALLED)
        stalled = changed(browsers, seconds)
        flood = browsers.do("flood", changes=BEYOND_THE_RING)
        measuring.resident(portal)
        resumed = browsers.do("resume")
        after = changed(browsers, seconds)
        measuring.resident(portal)
        browsers.do("fall")
        portal.kill()
        portal.wait()
        stack.enter_context(stage.portal())
        fall = browsers.answer()
    return Pages(
        count=opened["browsers"],
        alone=alone,
        full=full,
        most=max(measuring.sizes),
        opened=opened,
        rest=at_rest,
        quiet=quiet,
        stalled=stalled,
        after=after,
        resumed=resumed,
        flood=flood,
        fall=fall,
    )


def changed(browsers: Browsers, seconds: int) -> Answer:
    return browsers.do("change", seconds=seconds, perSecond=PER_SECOND)
