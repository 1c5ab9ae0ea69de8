"""Programs that the tests need on this machine."""

import subprocess
from pathlib import Path

# Checks for root and for Debian packages, as for the local cluster. It installs missing
# packages, or only names them if INSTALL=no.
PROGRAMS = Path(__file__).parents[2] / "cluster/prerequisites.sh"


def ensure() -> None:
    """Installs missing packages. Raises an error that names anything else missing."""
    checked = subprocess.run(
        ["sh", str(PROGRAMS)], capture_output=True, text=True, check=False
    )
    if checked.returncode:
        raise LookupError(checked.stderr)
    if problems := _problems():
        lines = "\n".join(f"  - {problem}" for problem in problems)
        raise LookupError(f"this machine lacks what the tests need:\n{lines}")


def _problems() -> list[str]:
    problems = []
    if not Path("/dev/loop-control").exists():
        problems.append("loop devices: modprobe loop")
    if "\toverlay\n" not in Path("/proc/filesystems").read_text():
        problems.append("overlayfs: modprobe overlay")
    return problems
