"""Measures, prints the figures, and fails if a promise is not kept."""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import stage as around
from promises import table
from promises.progress import step, warn

from bench import app, bars, image, node, pages, preview, reads, report
from bench.figures import Figures
from bench.stage import BFF, Stage, built


def main() -> int:
    arguments = parse()
    warn()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shipped = image.unpacked(folder)
        around.PORTAL = str(shipped.program)
        with step("install packages of Node"):
            for packages in (BFF, app.LIGHTHOUSE):
                node.install(packages)
        print("prepare an API server, people and claims …", file=sys.stderr)
        with built(folder, arguments.people) as stage:
            figures = measure(stage, arguments, shipped.size)
    promises = bars.of(figures)
    if arguments.output == "json":
        print(json.dumps(report.json(figures, promises), indent=2))
    else:
        print(f"\n{report.reads(figures)}\n{report.changes(figures)}")
        print(f"{report.notes(figures)}\n\n{table.bars('portal', promises)}")
        print("\n".join(table.missed(promises)))
    return 0 if all(one.is_met for one in promises) else 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--people", type=int, default=100, help="who has ten open pages each")
    add("--rounds", type=int, default=3, help="turns of each server that is read")
    add("--reading", type=int, default=10, help="seconds of a turn")
    add("--rest", type=int, default=300, help="seconds in which nothing changes")
    add("--changing", type=int, default=60, help="seconds of changes, thrice")
    add("--audits", type=int, default=5, help="runs of Lighthouse for each page")
    add("--output", choices=["table", "json"], default="table", help="how to print")
    return parser.parse_args()


def measure(stage: Stage, arguments: argparse.Namespace, size: int) -> Figures:
    with step("sign in"):
        stage.sign_in()
    with step("read"), stage.portal(), stage.bff() as bff:
        counts = tuple(bars.FASTER)
        read = reads.in_turns(stage, bff, counts, arguments.rounds, arguments.reading)
    with step("preview"), stage.portal():
        previewed = preview.measure(stage, arguments.reading)
    with step("keep pages open"):
        stage.claims(*(f"dev-{name}" for name in stage.people))
        opened = pages.measure(stage, arguments.rest, arguments.changing)
    with step("audit the app"), stage.portal():
        scores = app.lighthouse(stage, arguments.audits)
    return Figures(read, opened, previewed, app.scripts(), size, scores)


if __name__ == "__main__":
    sys.exit(main())
