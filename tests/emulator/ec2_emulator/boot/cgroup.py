"""The cgroups of machines. A machine's systemd needs a cgroup of its own.

They are below the emulator's cgroup, in the hierarchy of version 2. systemd mounts this
hierarchy on every host, if only for its own use.
"""

import os
import time
from contextlib import suppress
from pathlib import Path


def folder(emulator: int | None = None) -> Path:
    """The cgroup of an emulator's machines. `emulator` is its process, by default this
    one."""
    return _own() / f"ec2-emulator-{emulator or os.getpid()}"


def make(name: str) -> Path:
    place = folder() / name
    place.mkdir(parents=True, exist_ok=True)
    return place


def remove(name: str) -> None:
    """Removes a machine's cgroup, and those that systemd created in it. It retries,
    because a killed process leaves its cgroup some time later."""
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
            # A later mount hides an earlier one.
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
