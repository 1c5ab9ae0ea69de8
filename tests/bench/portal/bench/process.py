"""What a process takes of the machine (proc_pid_status(5), proc_pid_stat(5))."""

import os
import re
from pathlib import Path

MIB = 1 << 20
_RESIDENT = re.compile(r"^VmRSS:\s+(\d+) kB$", re.MULTILINE)
_TICKS = os.sysconf("SC_CLK_TCK")


def resident(process: int) -> int:
    """The resident memory in bytes."""
    found = _RESIDENT.search(Path(f"/proc/{process}/status").read_text())
    assert found, f"process {process} has no memory"
    return int(found[1]) * 1024


def processor_seconds(process: int) -> float:
    """The processor time since the start."""
    return used(Path(f"/proc/{process}/stat").read_text()) / _TICKS


def used(stat: str) -> int:
    """The 14th and the 15th field, in ticks. The second one is the program's name in parentheses and may
    have blanks."""
    fields = stat.rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
