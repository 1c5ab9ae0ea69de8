"""Measures, prints the figures, and fails if a promise is not kept."""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from promises import table
from promises.progress import step, warn

from bench import bars, bulk, connects, echoes, memory, report
from bench.connects import FRONTS
from bench.echoes import terminal
from bench.figures import Arrivals, Figures
from bench.sessions import Typing, opened
from bench.stage import Stage
from bench.ways import Way

# Connects a second while people type, from the highest rate down.
RATES = (5.0, 4.0, 3.0, 2.0, 1.0)


def main() -> int:
    arguments = parse()
    warn()
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder))
        try:
            with step("prepare people, workspaces and a jump host"):
                stage.build()
            figures = measure(stage, arguments)
        finally:
            with step("remove them"):
                stage.strike()
    promises = bars.of(figures)
    if arguments.output == "json":
        print(json.dumps(report.json(figures, promises), indent=2))
    else:
        print(f"\n{report.ways(figures)}\n{table.bars('bastion', promises)}")
        print(report.notes(figures))
        print("\n".join(table.missed(promises)))
    return 0 if all(one.is_met for one in promises) else 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=40, help="connects by each way")
    add("--people", type=int, default=100, help="who types, or comes at once")
    add("--arrivals", type=int, default=100, help="connects while people type")
    add("--keys", type=int, default=1000, help="keys typed by each way")
    add("--gibibytes", type=int, default=3, help="for each way and direction")
    add("--output", choices=["table", "json"], default="table", help="how to print")
    return parser.parse_args()


def measure(stage: Stage, arguments: argparse.Namespace) -> Figures:
    with step("connect"):
        before = stage.requests()
        took = connects.in_turns(stage, arguments.rounds)
        # The first round is not in the figures.
        requests = (stage.requests() - before) / (arguments.rounds + 1)
    with step("run commands"):
        commands = connects.commands(stage, arguments.rounds)
    with step("type"):
        echoed = echoes.in_turns(stage, arguments.keys)
    with step("carry gibibytes"):
        down, up = bulk.in_turns(stage, arguments.gibibytes)
    with step("open idle connections"):
        idle = memory.measure(stage, arguments.people)
    with step("connect at once"):
        crowd = connects.at_once(stage, arguments.people, rounds=3)
    with step("connect while people type"):
        arrivals = while_people_type(stage, arguments)
    return Figures(
        connects=took,
        requests=requests,
        commands=commands,
        arrivals=arrivals,
        crowd=crowd,
        echoes=echoed,
        down=down,
        up=up,
        memory=idle,
    )


def while_people_type(stage: Stage, arguments: argparse.Namespace) -> list[Arrivals]:
    """Arrivals at lower and lower rates, until the bastion keeps the limit or the jump host
    does."""

    def lines(way: Way) -> list[list[str]]:
        return [terminal(stage, way, number) for number in range(arguments.people)]

    measured: list[Arrivals] = []
    bastion, jump = FRONTS
    with opened(lines(bastion)) as ours, opened(lines(jump)) as theirs:
        typing = {bastion: Typing(ours), jump: Typing(theirs)}
        for rate in RATES:
            one = connects.arriving(stage, typing, rate, arguments.arrivals, rounds=2)
            measured.append(one)
            if min(one.p99(way) for way in FRONTS) < bars.LOADED:
                break
    return measured


if __name__ == "__main__":
    sys.exit(main())
