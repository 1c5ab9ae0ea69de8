"""Runs one command of a distributed run, at the other end of an ssh connection.

Standard input brings lines of JSON: first what to run, then signals for it. Its end
is the connection's end: then the command ends, with everything that it started.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

# From <linux/prctl.h>.
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
# How long a command may take to end before it is killed.
GRACE = 10.0
# As <sysexits.h> and shells have them.
NO_FOLDER = 72
NO_COMMAND = 127

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    line = sys.stdin.readline()
    if not line:
        return 1
    asked = json.loads(line)
    name, folder = asked["node"], asked["folder"]
    try:
        os.chdir(folder)
    except OSError as error:
        print(
            f"{folder} cannot be entered on {name} ({error.strerror}). A run starts in"
            f" the same folder on every node: copy it there, as with"
            f" `rsync -a {folder}/ {name}:{folder}/`, or work in a shared volume",
            file=sys.stderr,
        )
        return NO_FOLDER
    environment = {**os.environ, **asked["environment"]}
    program = shutil.which(asked["command"][0], path=environment.get("PATH"))
    if program is None:
        print(f"{name} has no {asked['command'][0]} on its PATH", file=sys.stderr)
        return NO_COMMAND
    return _run([program, *asked["command"][1:]], environment, sys.stdin)


def _run(command: list[str], environment: dict[str, str], orders: IO[str]) -> int:
    # What the command leaves behind becomes a child of this process, and is found.
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    child = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: _prctl(PR_SET_PDEATHSIG, signal.SIGTERM),
    )
    ender = _Ender(child)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: ender.begin())
    threading.Thread(target=_obey, args=[orders, child, ender], daemon=True).start()
    status = child.wait()
    kill_descendants()
    return status if status >= 0 else 128 - status


class _Ender:
    """Ends the command: politely, and after a while by force."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        self._timer = threading.Timer(GRACE, kill_descendants)
        self._timer.daemon = True
        self._begun = False

    def begin(self, number: int = signal.SIGTERM) -> None:
        self._child.send_signal(number)
        if not self._begun:
            self._begun = True
            self._timer.start()


def _obey(orders: IO[str], child: subprocess.Popen[bytes], ender: _Ender) -> None:
    for line in orders:
        ender.begin(json.loads(line)["signal"])
    ender.begin()


def kill_descendants() -> None:
    """Kills everything below this process, until nothing is left."""
    while found := descendants(os.getpid()):
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        _reap(found)


def descendants(root: int, proc: Path = Path("/proc")) -> list[int]:
    """Processes below another one that have not ended."""
    parents: dict[int, int] = {}
    for folder in proc.glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            # It has ended meanwhile.
            continue
        if fields[0] not in "ZX":
            parents[int(folder.name)] = int(fields[1])
    found, level = [], {root}
    while level := {p for p, parent in parents.items() if parent in level}:
        found.extend(sorted(level))
    return found


def _reap(found: list[int]) -> None:
    """Waits for those that are children of this process."""
    for process in found:
        try:
            os.waitpid(process, 0)
        except ChildProcessError:
            continue


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl({option})")


if __name__ == "__main__":
    sys.exit(main())
