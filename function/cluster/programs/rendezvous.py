"""workspace-rendezvous: whether all nodes find each other, and which one does not."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import IO, Any

import answering
import gang
import launch
import places
from gang import Node
from rendezvous_store import MARK
from table import table

NAME = "workspace-rendezvous"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="Checks that the nodes' names resolve, that their sshd answers, and"
        " that all of them meet in a TCPStore of torch.distributed on node 0.",
    )
    parser.add_argument(
        "--wait",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="how long nodes may take to come (default: %(default)g)",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=int(os.environ.get("PET_MASTER_PORT", "29500")),
        help="of the store (default: PET_MASTER_PORT, %(default)s)",
    )
    parser.add_argument("-o", "--output", choices=["table", "json"], default="table")
    options = parser.parse_args(arguments)
    try:
        nodes = gang.nodes(os.environ)
    except gang.Missing as missing:
        print(f"{NAME}: error: {missing}", file=sys.stderr)
        return 1
    rows = checked(nodes, options.wait, options.port)
    if options.output == "json":
        print(json.dumps(rows, indent=2))
    else:
        print(shown(rows))
    return 0 if all(row["arrived"] for row in rows) else 1


def checked(nodes: Sequence[Node], seconds: float, port: int) -> list[dict[str, Any]]:
    """What is known of every node."""
    unreachable = {node.index: answering.banner(node.host) for node in nodes}
    reports: dict[int, dict[str, Any]] = {}
    said: dict[int, str] = {}

    def hear(node: Node, stream: IO[bytes], line: bytes) -> None:
        text = line.decode(errors="replace").strip()
        if text.startswith(MARK):
            reports[node.index] = json.loads(text[len(MARK) :])
        elif text:
            said[node.index] = text

    reached = [node for node in nodes if not unreachable[node.index]]
    if reached:
        program = str(places.SCRIPTS / "rendezvous_store.py")
        job = launch.Job(
            ["python3", program, str(seconds)], "/", {"PET_MASTER_PORT": str(port)}
        )
        launch.run(reached, job, hear, together=False)
    return [
        _row(node, unreachable[node.index], reports, said.get(node.index, ""))
        for node in nodes
    ]


def _row(
    node: Node,
    unreachable: str | None,
    reports: dict[int, dict[str, Any]],
    said: str,
) -> dict[str, Any]:
    report = reports.get(node.index)
    met_by = [index for index, other in reports.items() if node.index in other["met"]]
    if unreachable:
        why = unreachable
    elif report is None:
        why = said or "it ended without a report"
    else:
        why = report["error"] or ""
    arrived = report is not None and len(met_by) == len(reports) and not why
    if not arrived and not why:
        missed = sorted(set(reports) - set(met_by))
        why = f"nodes {missed} did not meet it"
    seconds = report["seconds"] if report else None
    return {
        "node": node.name,
        "host": node.host,
        "arrived": arrived,
        "seconds": seconds,
        "why": why,
    }


def shown(rows: Sequence[dict[str, Any]]) -> str:
    head = ["NODE", "ARRIVED", "SECONDS", "WHY NOT"]
    cells = [
        [
            row["node"],
            "yes" if row["arrived"] else "no",
            "" if row["seconds"] is None else f"{row['seconds']:.2f}",
            row["why"],
        ]
        for row in rows
    ]
    missing = [row["node"] for row in rows if not row["arrived"]]
    end = f"missing: {' '.join(missing)}" if missing else "all nodes met"
    return f"{table(head, cells)}\n{end}"
