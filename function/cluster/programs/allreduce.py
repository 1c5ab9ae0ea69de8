"""workspace-allreduce: a real all-reduce over all nodes before the real work."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
from collections.abc import Sequence
from typing import IO, Any

import distributed_run
import gang
import launch
import places
from gang import Node
from table import table

NAME = "workspace-allreduce"
# allreduce_worker.py imports torch, which is not needed here.
MARK = b"workspace-allreduce "


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="Adds a tensor up over all nodes by torch.distributed, checks every"
        " element of the sum, and measures how long it takes.",
    )
    parser.add_argument(
        "--backend",
        choices=["gloo", "nccl"],
        default="",
        help="nccl needs GPUs (default: nccl where there are some)",
    )
    parser.add_argument(
        "--size",
        type=float,
        default=16.0,
        metavar="MIB",
        help="of the tensor (default: %(default)g)",
    )
    parser.add_argument(
        "--wait",
        type=float,
        default=distributed_run.WAIT,
        metavar="SECONDS",
        help="how long to wait for nodes that do not answer (default: %(default)g)",
    )
    parser.add_argument("-o", "--output", choices=["table", "json"], default="table")
    options = parser.parse_args(arguments)
    try:
        nodes = gang.nodes(os.environ)
        gang.wait(nodes, options.wait, _tell)
    except gang.Missing as missing:
        _tell(f"error: {missing}")
        return 1
    outcome, ranks = _measured(nodes, options.backend, options.size)
    if not ranks:
        _tell(f"error: {outcome.why()}; what it said is above")
        return outcome.status or 1
    if options.output == "json":
        print(json.dumps(ranks, indent=2))
    else:
        print(shown(nodes, ranks))
    return outcome.status


def _tell(text: str) -> None:
    print(f"{NAME}: {text}", file=sys.stderr, flush=True)


def _measured(
    nodes: Sequence[Node], backend: str, size: float
) -> tuple[launch.Outcome, list[dict[str, Any]]]:
    ranks: list[dict[str, Any]] = []

    def hear(node: Node, stream: IO[bytes], line: bytes) -> None:
        if line.startswith(MARK):
            ranks.extend(json.loads(line[len(MARK) :]))
        else:
            # The table alone goes to standard output.
            launch.prefixed(node, sys.stderr.buffer, line)

    worker = str(places.SCRIPTS / "allreduce_worker.py")
    environment = {
        **distributed_run.taken_over(),
        **distributed_run.environment_of(0, secrets.token_hex(6), os.environ),
    }
    # torchrun warns where it has to choose the number of threads itself.
    environment.setdefault("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
    job = launch.Job(["torchrun", worker, backend, str(size)], "/", environment)
    return launch.run(nodes, job, hear), ranks


def shown(nodes: Sequence[Node], ranks: Sequence[dict[str, Any]]) -> str:
    head = ["NODE", "RANK", "DEVICE", "SUM", "MS", "ALGORITHM GB/S", "BUS GB/S"]
    rows = [
        [
            nodes[rank["node"]].name,
            rank["rank"],
            rank["device"],
            "right" if rank["correct"] else "WRONG",
            f"{rank['milliseconds']:.2f}",
            f"{rank['algorithmGBps']:.2f}",
            f"{rank['busGBps']:.2f}",
        ]
        for rank in ranks
    ]
    first = ranks[0]
    size = first["bytes"] / 2**20
    end = f"{first['backend']}, {size:g} MiB, {len(ranks)} processes"
    return f"{table(head, rows)}\n{end}"
