"""One machine: a process that boots, reboots and shuts down."""

import logging
import os
import pty
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from machines.isolation import isolated
from machines.machine import SCRIPT, Machine

from . import cgroup

# systemd(1) lists the effects of these signals on process 1.
POWER_OFF = signal.SIGRTMIN + 4
REBOOT = signal.SIGRTMIN + 5
# Seconds between two signals. They are repeated because systemd may not run yet.
ASK_SECONDS = 2.0
# "GetConsoleOutput" returns the most recent 64 KiB.
CONSOLE_BYTES = 64 << 10

log = logging.getLogger("ec2_emulator")


class BootedMachine:
    """Boots at once, in a thread of its own.

    The thread calls `prepare` with the machine of each boot, before its first program
    runs. It calls `ended` once, when the machine does not boot again, and tells whether
    the machine ended by itself.
    """

    def __init__(
        self,
        name: str,
        command: list[str],
        patience_seconds: float,
        prepare: Callable[[Machine], None],
        ended: Callable[[bool], None],
    ) -> None:
        self.name = name
        self.inside: Machine | None = None
        self._command = command
        self._patience = patience_seconds
        self._prepare = prepare
        self._ended = ended
        self._console = bytearray()
        self._process: subprocess.Popen[bytes] | None = None
        # Set after the request for a shutdown or a reboot. The next boot ends a reboot.
        self._leaving = threading.Event()
        self._rebooting = threading.Event()
        self._started = threading.Event()
        self._gone = threading.Event()
        # The kernel ends the machine when this thread ends, so the thread must live as
        # long as the machine.
        threading.Thread(target=self._live, daemon=True, name=name).start()

    @property
    def is_on(self) -> bool:
        return not self._gone.is_set()

    def console(self) -> bytes:
        return bytes(self._console)

    def shut_down(self) -> None:
        """Shuts the machine down like an ACPI event: services stop in order, within a
        time limit."""
        if not self._leaving.is_set():
            self._leaving.set()
            threading.Thread(target=self._ask, args=(POWER_OFF,), daemon=True).start()

    def reboot(self) -> None:
        if not self._rebooting.is_set():
            self._rebooting.set()
            threading.Thread(target=self._ask, args=(REBOOT,), daemon=True).start()

    def kill(self) -> None:
        """Kills the machine, and waits until all of it is gone."""
        self._leaving.set()
        self._started.wait()
        if self._process is not None:
            self._process.kill()
        self._gone.wait()

    def _ask(self, for_what: int) -> None:
        self._started.wait()
        boot, waited = self._process, 0.0
        while waited < self._patience and boot is self._process and self.is_on:
            if self.inside is not None:
                try:
                    os.kill(self.inside.pid, for_what)
                except ProcessLookupError:
                    return
            self._gone.wait(ASK_SECONDS)
            waited += ASK_SECONDS
        if boot is self._process and boot is not None and self.is_on:
            log.warning("%s did not shut down and is switched off", self.name)
            boot.kill()

    def _live(self) -> None:
        try:
            while True:
                code = self._boot()
                # reboot(2): a reboot in a PID namespace ends process 1 with a signal.
                again = code == -signal.SIGHUP or self._rebooting.is_set()
                self._rebooting.clear()
                if self._leaving.is_set() or not again:
                    break
        except Exception:
            log.exception("%s failed", self.name)
        finally:
            self._started.set()
            cgroup.remove(self.name)
            self._gone.set()
            self._ended(not self._leaving.is_set())

    def _boot(self) -> int:
        """Boots the machine, and waits until its process 1 ends."""
        ours, theirs = pty.openpty()
        command = [*isolated("uts", "ipc", "net", "cgroup"), "sh", str(SCRIPT)]
        command += [*self._command, os.ttyname(theirs)]
        join = 'echo 0 >"$0/cgroup.procs"; exec "$@"'
        try:
            process = subprocess.Popen(
                ["sh", "-c", join, str(cgroup.make(self.name)), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            self._process = process
            self._started.set()
            assert process.stdin is not None and process.stdout is not None
            with process, process.stdin, process.stdout:
                line = process.stdout.readline()
                if not line:
                    raise RuntimeError(f"{SCRIPT.name} failed; what it said is above")
                self.inside = Machine(int(line))
                try:
                    self._prepare(self.inside)
                    process.stdin.write(b"\n")
                    process.stdin.flush()
                    self._read_console(ours, process)
                finally:
                    self.inside = None
                    if process.poll() is None:
                        process.kill()
                return process.wait()
        finally:
            os.close(ours)
            os.close(theirs)

    def _read_console(self, console: int, process: subprocess.Popen[bytes]) -> None:
        ended = os.pidfd_open(process.pid)
        try:
            while True:
                readable, _, _ = select.select([console, ended], [], [])
                if console in readable:
                    self._console += os.read(console, 4096)
                    del self._console[:-CONSOLE_BYTES]
                elif ended in readable:
                    return
        finally:
            os.close(ended)


def arguments(
    layers: Iterable[Path], mountpoint: Path, packages: Path, disk: Path
) -> list[str]:
    """The arguments of `machine.sh`, except the console."""
    root = ":".join(map(str, layers))
    return [root, str(mountpoint), str(packages), str(disk)]
