"""A machine that can boot user data: namespaces around a copy of the root."""

import json
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from machines.isolation import isolated
from machines.root import Root

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The environment that systemd gives services. With SYSTEMD_OFFLINE, systemctl enables
# units without a running systemd.
ENVIRONMENT = [f"PATH={PATH}", "LANG=C.UTF-8", "SYSTEMD_OFFLINE=1"]
# Capabilities that affect the whole host. A machine's root does not get them.
WITHOUT = ["sys_boot", "sys_module", "sys_rawio", "sys_time", "syslog", "mknod"]
# A unit that user data starts while cloud-init's last stage goes on.
SETUP_UNIT = "gpu-workspace-setup.service"
STAGES = ["init --local", "init", "modules --mode=config", "modules --mode=final"]
CAP_SYS_RESOURCE = 24
SEED = "/var/lib/cloud/seed/nocloud"
SCRIPT = Path(__file__).with_name("machine.sh")


class Machine:
    def __init__(self, pid: int) -> None:
        # The host's number of the machine's process 1.
        self.pid = pid

    def command(self, *arguments: str) -> list[str]:
        """A command of the host that runs a command in the machine."""
        enter = ["nsenter", "--target", str(self.pid), "--all", "--root", "--wdns=/"]
        bounds = "--bounding-set=" + ",".join(f"-{name}" for name in WITHOUT)
        clean = ["env", "-i", *ENVIRONMENT]
        return [*enter, *clean, "setpriv", bounds, "--", *arguments]

    def run(
        self, *arguments: str, given: str = "", check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command as root. Its output includes stderr."""
        done = subprocess.run(
            self.command(*arguments),
            input=given,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if check and done.returncode:
            said = f"{shlex.join(arguments)} ended with {done.returncode}"
            raise AssertionError(f"{said}:\n{done.stdout}")
        return done

    def says(self, *arguments: str) -> str:
        return self.run(*arguments).stdout.strip()

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*arguments),
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def write(self, path: str, content: str | bytes, mode: str = "0644") -> None:
        script = 'install -D -m "$2" /dev/null "$1" && cat >"$1"'
        data = content.encode() if isinstance(content, str) else content
        command = self.command("sh", "-c", script, "-", path, mode)
        subprocess.run(command, input=data, check=True)

    def outside(self, path: str) -> str:
        """The host's path of a machine's file. `path` must have no symbolic links."""
        return f"/proc/{self.pid}/root{path}"

    def has(self, path: str) -> bool:
        return self.run("test", "-e", path, check=False).returncode == 0

    def boot(self, user_data: str, instance: str = "i-1") -> "Boot":
        """Starts cloud-init's stages, in the order of its systemd units, and after them the
        setup, if it is a unit that user data has enabled."""
        self.write(f"{SEED}/user-data", user_data)
        self.write(f"{SEED}/meta-data", f"instance-id: {instance}\n")
        stages = "; ".join(f"cloud-init {stage}" for stage in STAGES)
        unit = f"/etc/systemd/system/multi-user.target.wants/{SETUP_UNIT}"
        setup = f"[ ! -e {unit} ] || /usr/local/lib/gpu-workspace/setup"
        return Boot(self, self.start("sh", "-c", f"{stages}; {setup}"))

    def can_resize(self) -> bool:
        """Whether the kernel lets root resize mounted file systems here."""
        status = self.says("grep", "^CapEff:", "/proc/self/status")
        return bool(int(status.split()[1], 16) >> CAP_SYS_RESOURCE & 1)


class Boot:
    def __init__(self, machine: Machine, process: subprocess.Popen[str]) -> None:
        self.machine = machine
        self._process = process

    def finish(self) -> Machine:
        """Waits until cloud-init ends, with success or failure. Returns the machine."""
        self._process.communicate(timeout=300)
        return self.machine


def status(machine: Machine) -> dict[str, Any]:
    """cloud-init's own status, which clients that wait for an instance read."""
    done = machine.run("cloud-init", "status", "--format=json", check=False)
    report = json.loads(done.stdout)
    assert isinstance(report, dict)
    return report


@contextmanager
def started(root: Root, packages: Path) -> Iterator[Machine]:
    """A new machine. `packages` is its /srv/packages."""
    arguments = [SCRIPT, root.files, root.mountpoint, packages]
    command = [*isolated("uts", "ipc", "net"), "sh", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"{SCRIPT.name} failed; what it said is above")
            yield Machine(int(line))
        finally:
            process.kill()
