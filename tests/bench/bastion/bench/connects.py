"""How long people wait until they are in."""

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import inf

from bench.figures import Arrivals, Crowd
from bench.sessions import Typing
from bench.stage import PEOPLE, Stage
from bench.ways import Way

# A connect that has not ended after this time has failed, in seconds.
LONGEST = 60.0
# What people go through to get to their workspace.
FRONTS = (Way.BASTION, Way.JUMP)


class Failed(Exception):
    """A command line of the benchmark failed. The message has what it printed."""


def run(line: list[str]) -> float:
    """Runs a command line that must succeed. Returns its duration in seconds."""
    began = time.perf_counter()
    ran = subprocess.run(
        line, stdin=subprocess.DEVNULL, capture_output=True, timeout=LONGEST
    )
    took = time.perf_counter() - began
    if ran.returncode != 0:
        raise Failed(f"{line}: {ran.returncode} {ran.stderr.decode()}")
    return took


@contextmanager
def forwarded(stage: Stage, number: int) -> Iterator[tuple[str, ...]]:
    """Flags of ssh for the port that a started `kubectl port-forward` listens on."""
    namespace, pod = stage.pods[number % PEOPLE]
    line = ["kubectl", "port-forward", "-n", namespace, f"pod/{pod}", ":22"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as forward:
        assert forward.stdout is not None
        try:
            # `Forwarding from 127.0.0.1:40000 -> 22`
            said = forward.stdout.readline()
            port = said.partition("127.0.0.1:")[2].partition(" ")[0]
            if not port.isdigit():
                raise Failed(f"{line}: {said}")
            yield ("-p", port)
        finally:
            forward.terminate()


def connect(stage: Stage, way: Way, number: int) -> float:
    """Runs `true` in a workspace. Returns the duration in seconds, with that of the start
    of `kubectl port-forward`."""
    if way is not Way.FORWARD:
        return run(stage.line(way, number, "true"))
    began = time.perf_counter()
    with forwarded(stage, number) as flags:
        run(stage.line(way, number, "true", flags=flags))
        return time.perf_counter() - began


def in_turns(stage: Stage, rounds: int) -> dict[Way, list[float]]:
    """Connects by all ways. The first round fills caches."""
    took: dict[Way, list[float]] = {way: [] for way in Way}
    for number in range(rounds + 1):
        for way in Way:
            seconds = connect(stage, way, number)
            if number > 0:
                took[way].append(seconds)
    return took


def commands(stage: Stage, rounds: int) -> dict[str, list[float]]:
    """Command lines that end at the host in front."""
    fronts = {"whoami": Way.BASTION, "list": Way.BASTION, "true": Way.JUMP}
    took: dict[str, list[float]] = {word: [] for word in fronts}
    for number in range(rounds + 1):
        for word, way in fronts.items():
            seconds = run(stage.front(way, number, word))
            if number > 0:
                took[word].append(seconds)
    return took


def _waited(stage: Stage, way: Way, number: int, since: float) -> float:
    """The time from a moment until a person is in; infinite if the connect fails."""
    try:
        run(stage.line(way, number, "true"))
    except (Failed, subprocess.TimeoutExpired) as failed:
        print(f"{way.value}: {failed}", file=sys.stderr)
        return inf
    return time.perf_counter() - since


def at_once(stage: Stage, people: int, rounds: int) -> Crowd:
    """All connect at the same moment."""
    total: dict[Way, list[float]] = {way: [] for way in FRONTS}
    failed = dict.fromkeys(FRONTS, 0)
    with ThreadPoolExecutor(people) as pool:
        for _ in range(rounds):
            for way in FRONTS:
                began = time.perf_counter()
                waiting = [
                    pool.submit(_waited, stage, way, number, began)
                    for number in range(people)
                ]
                waited = [one.result() for one in waiting]
                came = [one for one in waited if one < inf]
                failed[way] += people - len(came)
                total[way].append(max(came, default=inf))
    return Crowd(total, failed)


def arriving(
    stage: Stage, typing: dict[Way, Typing], rate: float, arrivals: int, rounds: int
) -> Arrivals:
    """People connect at a rate while others type, whether or not the earlier ones are in.
    The time counts from the moment at which a person wants to connect."""
    took: dict[Way, list[float]] = {way: [] for way in FRONTS}
    for _ in range(rounds):
        for way in FRONTS:
            with typing[way].going_on():
                took[way] += _arrive(stage, way, rate, arrivals)
    return Arrivals(rate, took)


def _arrive(stage: Stage, way: Way, rate: float, arrivals: int) -> list[float]:
    began = time.perf_counter()
    waiting = []
    # All arrivals may wait at the same time.
    with ThreadPoolExecutor(arrivals) as pool:
        for number in range(arrivals):
            due = began + number / rate
            time.sleep(max(0.0, due - time.perf_counter()))
            waiting.append(pool.submit(_waited, stage, way, number, due))
        return [one.result() for one in waiting]
