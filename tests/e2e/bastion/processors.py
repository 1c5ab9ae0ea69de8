"""How long the processors of this machine worked, and for whom."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

# The unit of the kernel's times.
TICKS = os.sysconf("SC_CLK_TCK")


class Waiting:
    """How long the work of other processes kept the processors from a program, since the
    object was made. A processor does one thing at a time, so the time is the work of the
    others, divided by the number of processors."""

    def __init__(self, processes: Callable[[], Iterable[int]]) -> None:
        """`processes` tells the program's processes that live."""
        self.processes = processes
        self.began = self._work_of_others()

    def seconds(self) -> float:
        return (self._work_of_others() - self.began) / (os.cpu_count() or 1)

    def _work_of_others(self) -> float:
        """Processor seconds since the machine started."""
        own = sum(map(_process, self.processes()))
        return _machine() - own


def _machine() -> float:
    # proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal.
    line = Path("/proc/stat").read_text().partition("\n")[0]
    user, nice, system, _idle, _iowait, irq, softirq, steal, *_ = map(
        int, line.split()[1:]
    )
    return (user + nice + system + irq + softirq + steal) / TICKS


def _process(process: int) -> float:
    """Processor seconds of a process, and of its children that have ended."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        # It has ended. Its parent has its time.
        return 0.0
    # proc_pid_stat(5): utime, stime, cutime and cstime are the fields 14 to 17. The second
    # field is a name in brackets, which may have spaces.
    fields = stat.rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS
