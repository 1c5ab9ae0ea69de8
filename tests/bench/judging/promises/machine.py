"""The machine on which the benchmark runs."""

import time
from pathlib import Path

# How long the processors are watched, in seconds.
SAMPLE = 1.0


def busy() -> float:
    """The share of all processors' time that other programs use."""
    idle, all_ = _ticks()
    time.sleep(SAMPLE)
    idle_later, all_later = _ticks()
    return 1 - (idle_later - idle) / max(all_later - all_, 1)


def _ticks() -> tuple[int, int]:
    """The idle time since the boot, and all time, in the kernel's ticks: user, nice,
    system, idle, iowait and others (proc_stat(5)). A processor that waits for a disk counts
    as idle, because programs can use it."""
    first = Path("/proc/stat").read_text().splitlines()[0]
    times = [int(time_) for time_ in first.split()[1:]]
    return times[3] + times[4], sum(times)
