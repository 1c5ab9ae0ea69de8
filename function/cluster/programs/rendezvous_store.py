"""One node's part of workspace-rendezvous: meets the others in a TCPStore."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

MARK = "workspace-rendezvous "


def main(seconds: float) -> int:
    rank = int(os.environ["PET_NODE_RANK"])
    host, port = os.environ["PET_MASTER_ADDR"], int(os.environ["PET_MASTER_PORT"])
    size = len(os.environ["WORKSPACE_HOSTS"].split())
    began = time.monotonic()
    report: dict[str, Any] = {"rank": rank, "met": [], "error": _unresolved(host)}
    if not report["error"]:
        try:
            report["met"] = _meet(rank, size, host, port, seconds)
        except (RuntimeError, ValueError) as error:
            # torch.distributed's errors are RuntimeErrors; the first line says it.
            report["error"] = f"{host} port {port}: {str(error).splitlines()[0]}"
    report["seconds"] = round(time.monotonic() - began, 3)
    print(MARK + json.dumps(report), flush=True)
    return 0 if len(report["met"]) == size else 1


def _unresolved(host: str) -> str | None:
    try:
        socket.getaddrinfo(host, None)
    except socket.gaierror as error:
        return f"{host} does not resolve here ({error.strerror})"
    return None


def _meet(rank: int, size: int, host: str, port: int, seconds: float) -> list[int]:
    """Which nodes came, by rank."""
    from torch.distributed import TCPStore

    limit = timedelta(seconds=seconds)
    # world_size is left out: with it, the constructor waits for all and says nothing
    # of who is missing.
    store = TCPStore(
        host, port, is_master=rank == 0, timeout=limit, wait_for_workers=False
    )
    store.add(f"came/{rank}", 1)

    # Adding nothing reads a counter without waiting for it.
    def marked(mark: str, ranks: Iterable[int]) -> list[int]:
        return [other for other in ranks if store.add(f"{mark}/{other}", 0)]

    met = _until(lambda: marked("came", range(size)), size, seconds)
    store.add(f"looked/{rank}", 1)
    if rank == 0:
        # The store goes with this process: the others look first.
        _until(lambda: marked("looked", met), len(met), seconds)
    return met


def _until(look: Callable[[], list[int]], enough: int, seconds: float) -> list[int]:
    deadline = time.monotonic() + seconds
    while True:
        seen = look()
        if len(seen) >= enough or time.monotonic() > deadline:
            return seen
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
