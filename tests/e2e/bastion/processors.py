"""How long the processors of this machine worked, and for whom."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

# The unit of the kernel's times.
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Work:
    """Processor seconds since the machine started."""

    machine: float
    # Of the processes that somebody asks for, with their children that have ended.
    own: float

    @staticmethod
    def until_now(processes: Iterable[int]) -> "Work":
        return Work(_machine(), sum(map(_process, processes)))

    def others(self, since: "Work") -> float:
        """The seconds since then in which processors worked for others."""
        return (self.machine - since.machine) - (self.own - since.own)


class Waiting:
    """What of a time went by because this machine did the work of others. A processor that
    works for others works for nobody else, so the time is their work by the number of
    processors."""

    def __init__(self, processes: Callable[[], Iterable[int]]) -> None:
        self.processes = processes
        self.since = Work.until_now(processes())

    def seconds(self) -> float:
        now = Work.until_now(self.processes())
        return now.others(self.since) / (os.cpu_count() or 1)


def _machine() -> float:
    # proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal.
    line = Path("/proc/stat").read_text().partition("\n")[0]
    user, nice, system, _idle, _iowait, irq, softirq, steal, *_ = map(
        int, line.split()[1:]
    )
    return (user + nice + system + irq + softirq + steal) / TICKS


def _process(process: int) -> float:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        # It has ended. Its parent has its time.
        return 0.0
    # proc_pid_stat(5): utime, stime, cutime and cstime are the fields 14 to 17. The second
    # field is a name in brackets, which may have spaces.
    fields = stat.rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS
