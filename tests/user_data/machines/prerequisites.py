"""What the machine that runs the tests must have."""

import subprocess
from pathlib import Path

# Root and Debian packages, as for the local cluster: what is missing is installed, or
# named where INSTALL=no.
PROGRAMS = Path(__file__).parents[2] / "cluster/prerequisites.sh"


def ensure() -> None:
    """Installs missing packages; raises with what else is missing."""
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
