"""What open connections that do nothing take of the memory."""

import re
from pathlib import Path

from bench.connects import FRONTS
from bench.echoes import terminal
from bench.figures import Memory
from bench.sessions import opened
from bench.stage import Stage
from bench.ways import Way

_PSS = re.compile(r"^Pss:\s+(\d+) kB$", re.MULTILINE)


def measure(stage: Stage, connections: int) -> Memory:
    """The proportional set sizes of idle connections to workspaces."""
    each: dict[Way, float] = {}
    broker: tuple[float, float] = (0.0, 0.0)
    for way in FRONTS:
        before, alone = _of_sshd(stage, way), _of_broker(stage)
        lines = [terminal(stage, way, number) for number in range(connections)]
        with opened(lines):
            each[way] = (_of_sshd(stage, way) - before) / connections
            if way is Way.BASTION:
                broker = (alone, _of_broker(stage))
    return Memory(each, broker, connections)


def _of_broker(stage: Stage) -> float:
    return pss(stage.door.broker())


def _of_sshd(stage: Stage, way: Way) -> float:
    """All processes of the container in front: sshd and what it started."""
    processes = stage.cluster.processes_in(stage.container(way))
    return sum(pss(process) for process in processes)


def pss(process: int) -> float:
    """The proportional set size of a process in bytes (proc_pid_smaps(5))."""
    text = Path(f"/proc/{process}/smaps_rollup").read_text()
    found = _PSS.search(text)
    assert found, f"process {process} has no memory"
    return int(found.group(1)) * 1024
