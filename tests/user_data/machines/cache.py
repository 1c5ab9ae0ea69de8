"""The cache folder, with the rules of the local cluster (tests/cluster/src/cache.rs).

You can delete anything in it; the tests build it again. The name of an entry has a hash
of its sources. A finished entry gets its name by a rename, so a folder with such a name
is complete.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def folder() -> Path:
    for variable, below in [
        ("GPU_WORKSPACES_CACHE", ""),
        ("XDG_CACHE_HOME", "gpu-workspaces"),
        ("HOME", ".cache/gpu-workspaces"),
    ]:
        value = os.environ.get(variable, "")
        # The XDG base directory specification says to ignore relative paths.
        if value.startswith("/"):
            return Path(value) / below
    raise LookupError(
        "no cache folder: set GPU_WORKSPACES_CACHE, XDG_CACHE_HOME or HOME"
        " to an absolute path"
    )


def key(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        # With the lengths, ("ab", "c") and ("a", "bc") have different hashes.
        digest.update(len(part.encode()).to_bytes(8, "big") + part.encode())
    return digest.hexdigest()[:16]


def entry(kind: str, name: str, key: str, make: Callable[[Path], None]) -> Path:
    """The folder of an entry. If it does not exist, `make` fills it."""
    place = folder() / kind / f"{name}-{key}"
    if not place.exists():
        with lock(kind):
            if not place.exists():
                _publish(place, make)
    return place


def log(name: str) -> Path:
    """The path for the log of a build. The next build overwrites it."""
    path = folder() / "logs" / f"{name}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def lock(name: str) -> Iterator[None]:
    path = folder() / "locks" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _publish(place: Path, make: Callable[[Path], None]) -> None:
    unfinished = place.with_name(place.name + ".unfinished")
    if unfinished.exists():
        shutil.rmtree(unfinished)
    unfinished.mkdir(parents=True)
    # Other users must not enter, because a root file system has setuid programs.
    place.parent.chmod(0o700)
    try:
        make(unfinished)
    except BaseException:
        shutil.rmtree(unfinished)
        raise
    unfinished.rename(place)
