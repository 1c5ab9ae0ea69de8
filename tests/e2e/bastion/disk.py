"""The audit volume of a replica, as a file system of its own that can be full."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bastion.door import NAMESPACE, Door
from environment.waiting import until

# What the volume has room for beside what is on it.
ROOM = 1 << 20
# The number of the last replica, the one that goes when there is one less.
LAST = 1


class Disk:
    """A small file system. `folder` is its path as this machine sees it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def filler(self) -> Path:
        return self.folder / "filler"

    @contextmanager
    def full(self) -> Iterator[None]:
        """Takes all the room that is left, and gives it back."""
        try:
            with suppress(OSError), self.filler.open("ab", buffering=0) as file:
                while True:
                    file.write(b"\0" * 4096)
            yield
        finally:
            self.filler.unlink()


@contextmanager
def small_disk(door: Door) -> Iterator[Disk]:
    """Puts a small file system in the place of the last replica's volume, with the same
    content. At the end the volume is back, and has what was written meanwhile."""
    volume = _volume(door)
    # The mounts of the cluster are not those of this machine.
    state = Path(os.environ["KUBECONFIG"]).parents[1]
    init = json.loads((state / "init.json").read_text())["pid"]
    enter = ["nsenter", f"--mount=/proc/{init}/ns/mnt", "--"]
    disk = Disk(Path(f"/proc/{init}/root{volume}"))
    kept = door.folder / "kept"
    kept.mkdir()

    with _without_last_replica(door):
        _copy(disk.folder, kept)
        size = ROOM + sum(file.stat().st_size for file in kept.rglob("*"))
        options = ["-t", "tmpfs", "-o", f"size={size}"]
        _run(*enter, "mount", *options, "tmpfs", str(volume))
        _copy(kept, disk.folder)
    try:
        yield disk
    finally:
        with _without_last_replica(door):
            disk.filler.unlink(missing_ok=True)
            _copy(disk.folder, kept)
            _run(*enter, "umount", str(volume))
            _copy(kept, disk.folder)


@contextmanager
def _without_last_replica(door: Door) -> Iterator[None]:
    def scale(replicas: int) -> None:
        door.cluster.kubectl(
            *("scale", "statefulset/gpu-bastion", "-n", NAMESPACE),
            f"--replicas={replicas}",
        )

    def is_gone() -> bool:
        return door.cluster.get("pod", f"gpu-bastion-{LAST}", NAMESPACE) is None

    scale(LAST)
    until("the last replica to be gone", is_gone, 90)
    yield
    scale(LAST + 1)
    until("the last replica", lambda: door.ready(LAST), 90)


def _volume(door: Door) -> Path:
    claim = door.cluster.get("pvc", f"audit-gpu-bastion-{LAST}", NAMESPACE)
    assert claim is not None
    volume = door.cluster.get("pv", claim["spec"]["volumeName"], "")
    assert volume is not None
    return Path(volume["spec"]["local"]["path"])


def _run(*words: str) -> None:
    subprocess.run(words, check=True)


def _copy(source: Path, target: Path) -> None:
    _run("cp", "-a", f"{source}/.", str(target))
