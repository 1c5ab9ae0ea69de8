"""One process of workspace-allreduce, started by torchrun."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from typing import Any

import torch
import torch.distributed as dist

MARK = "workspace-allreduce "
ROUNDS, WARM_UP = 10, 2


def main(backend: str, size: float) -> int:
    backend = backend or ("nccl" if torch.cuda.is_available() else "gloo")
    device = torch.device("cpu")
    if backend == "nccl":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group(backend)
    try:
        report = _measured(device, backend, int(size * 2**20 / 4))
        everything: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(everything, report)
    finally:
        dist.destroy_process_group()
    if report["rank"] == 0:
        print(MARK + json.dumps(everything), flush=True)
    return 0 if report["correct"] else 1


def _measured(device: torch.device, backend: str, elements: int) -> dict[str, Any]:
    rank, world = dist.get_rank(), dist.get_world_size()
    times, correct = [], True
    for number in range(WARM_UP + ROUNDS):
        # Whole numbers that a float holds exactly, so the sum has one right value.
        tensor = torch.full((elements,), float(rank + 1), device=device)
        dist.barrier()
        began = time.perf_counter()
        dist.all_reduce(tensor)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        if number >= WARM_UP:
            times.append(time.perf_counter() - began)
        wanted = world * (world + 1) / 2
        correct = correct and bool((tensor == wanted).all())
    seconds = statistics.median(times)
    speed = elements * 4 / seconds / 1e9
    return {
        "node": int(os.environ["GROUP_RANK"]),
        "rank": rank,
        "device": (
            torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
        ),
        "backend": backend,
        "bytes": elements * 4,
        "correct": correct,
        "milliseconds": round(seconds * 1e3, 3),
        # As nccl-tests define them: each byte crosses the network 2(n-1)/n times.
        "algorithmGBps": round(speed, 3),
        "busGBps": round(speed * 2 * (world - 1) / world, 3),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
