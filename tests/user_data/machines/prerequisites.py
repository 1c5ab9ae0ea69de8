"""What the machine that runs the tests must have."""

import os
import shutil
import subprocess
from pathlib import Path

PROGRAMS = {
    "mmdebstrap": "mmdebstrap",
    "apt-get": "apt",
    "ip": "iproute2",
    "mount": "mount",
    "nft": "nftables",
    "nsenter": "util-linux",
    "pivot_root": "util-linux",
    "setpriv": "util-linux",
    "ssh": "openssh-client",
    "unshare": "util-linux",
}
INSTALL = ["apt-get", "install", "-y", "-qq", "--no-install-recommends"]


def ensure() -> None:
    """Installs missing packages where CI is set; raises with what is missing."""
    if os.environ.get("CI") and os.geteuid() == 0 and (packages := _packages()):
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-qq"], env=quiet, check=True)
        subprocess.run([*INSTALL, *packages], env=quiet, check=True)
    if problems := _problems():
        lines = "\n".join(f"  - {problem}" for problem in problems)
        raise LookupError(f"this machine lacks what the tests need:\n{lines}")


def _problems() -> list[str]:
    problems = []
    if os.geteuid() != 0:
        problems.append("root (namespaces and mounts): run as root, as with sudo -E")
    if packages := _packages():
        problems.append(
            f"{' '.join(packages)}: apt-get update && apt-get install -y"
            f" --no-install-recommends {' '.join(packages)}"
        )
    if not Path("/dev/loop-control").exists():
        problems.append("loop devices: modprobe loop")
    if "\toverlay\n" not in Path("/proc/filesystems").read_text():
        problems.append("overlayfs: modprobe overlay")
    return problems


def _packages() -> list[str]:
    found = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = {p for name, p in PROGRAMS.items() if not shutil.which(name, path=found)}
    return sorted(missing)
