"""Cgroups of machines: systemd needs one of its own.

They are below the emulator's own, in the hierarchy of version 2, which every kernel
has mounted that systemd runs on, if only for systemd's own use.
"""

import os
import time
from contextlib import suppress
from pathlib import Path


def folder(emulator: int | None = None) -> Path:
    """Of the machines of an emulator, this one if no process is named."""
    return _own() / f"ec2-emulator-{emulator or os.getpid()}"


def make(name: str) -> Path:
    place = folder() / name
    place.mkdir(parents=True, exist_ok=True)
    return place


def remove(name: str) -> None:
    """With all that systemd made below. A killed process leaves a little later."""
    for _ in range(50):
        remains = _remove(folder() / name)
        if not remains:
            return
        time.sleep(0.1)


def _remove(place: Path) -> bool:
    for path, _, _ in os.walk(place, topdown=False):
        with suppress(OSError):
            os.rmdir(path)
    return place.exists()


def _own() -> Path:
    hierarchy = None
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, kind = line.partition(" - ")
        if kind.startswith("cgroup2 "):
            # A later mount lies above an earlier one.
            hierarchy = Path(mount.split(" ")[4])
    if hierarchy is None:
        raise LookupError(
            "machines need cgroups of version 2: "
            "mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified"
        )
    (line,) = [
        one
        for one in Path("/proc/self/cgroup").read_text().splitlines()
        if one.startswith("0::")
    ]
    return hierarchy / line.removeprefix("0::/")
