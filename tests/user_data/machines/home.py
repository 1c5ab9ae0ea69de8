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
    """Writes the files of the user data for a home volume, without a boot."""
    user = ["--create-home", "--shell", "/bin/bash", "--uid", str(uid), "developer"]
    machine.run("useradd", *user)
    config = documents.parsed(goldens.document(case))
    for place in (SCRIPT, UNIT_FILE, SSHD):
        file = documents.file(config, place)
        machine.write(place, file["content"], file["permissions"])


def start(machine: Machine) -> subprocess.Popen[str]:
    """Starts the command of the unit."""
    unit = machine.says("cat", UNIT_FILE).splitlines()
    (command,) = [line for line in unit if line.startswith("ExecStart=")]
    return machine.start(*shlex.split(command.removeprefix("ExecStart=")))


def mount(machine: Machine, running: subprocess.Popen[str] | None = None) -> None:
    """Runs the script, or waits for a running one. At its end, home must be mounted."""
    running = running or start(machine)
    output, _ = running.communicate(timeout=60)
    assert (output, running.returncode) == ("", 0), log(machine)
    assert is_mounted(machine)
    assert machine.has(READY)


def wait(machine: Machine, because: str) -> subprocess.Popen[str]:
    """Runs the script until its log has the reason for which it waits."""
    running = start(machine)
    until(because, lambda: because in log(machine))
    assert running.poll() is None
    assert not is_mounted(machine)
    assert not machine.has(READY)
    return running


def reboot(machine: Machine) -> None:
    """Has the effects of a reboot: home is not mounted, and its folder in /run is gone."""
    machine.run("umount", HOME)
    machine.run("rm", "-r", str(PurePosixPath(READY).parent))


def is_mounted(machine: Machine) -> bool:
    return machine.run("mountpoint", "-q", HOME, check=False).returncode == 0


def log(machine: Machine) -> str:
    return machine.says("sh", "-c", f"cat {LOG} 2>/dev/null || true")
