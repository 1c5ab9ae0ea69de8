"""A machine whose workspace has a home volume."""

import shlex
import subprocess
from pathlib import PurePosixPath

from machines import documents, goldens, workspaces
from machines.machine import Machine
from machines.waiting import until

SCRIPT = "/usr/local/lib/gpu-workspace/home"
UNIT = "gpu-workspace-home.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
SSHD = "/etc/ssh/sshd_config.d/10-gpu-workspace.conf"
HOME = "/home/developer"
LOG = "/var/log/gpu-workspace-home.log"
READY = "/run/gpu-workspace/home-ready"


def install(machine: Machine, uid: int = 1000, case: str = workspaces.HOME) -> None:
    """Puts in place, without booting, what user data writes for a home volume."""
    user = ["--create-home", "--shell", "/bin/bash", "--uid", str(uid), "developer"]
    machine.run("useradd", *user)
    config = documents.parsed(goldens.document(case))
    for place in (SCRIPT, UNIT_FILE, SSHD):
        file = documents.file(config, place)
        machine.write(place, file["content"], file["permissions"])


def start(machine: Machine) -> subprocess.Popen[str]:
    """Starts what the unit starts."""
    unit = machine.says("cat", UNIT_FILE).splitlines()
    (command,) = [line for line in unit if line.startswith("ExecStart=")]
    return machine.start(*shlex.split(command.removeprefix("ExecStart=")))


def mount(machine: Machine, running: subprocess.Popen[str] | None = None) -> None:
    """Runs the script, or goes on with it, to its end: home is mounted."""
    running = running or start(machine)
    output, _ = running.communicate(timeout=60)
    assert (output, running.returncode) == ("", 0), log(machine)
    assert is_mounted(machine)
    assert machine.has(READY)


def wait(machine: Machine, because: str) -> subprocess.Popen[str]:
    """Runs the script until its log says that it waits, and for what."""
    running = start(machine)
    until(because, lambda: because in log(machine))
    assert running.poll() is None
    assert not is_mounted(machine)
    assert not machine.has(READY)
    return running


def reboot(machine: Machine) -> None:
    """Home is not mounted any more, and /run is empty."""
    machine.run("umount", HOME)
    machine.run("rm", "-r", str(PurePosixPath(READY).parent))


def is_mounted(machine: Machine) -> bool:
    return machine.run("mountpoint", "-q", HOME, check=False).returncode == 0


def log(machine: Machine) -> str:
    return machine.says("sh", "-c", f"cat {LOG} 2>/dev/null || true")
