"""The Python environment from behaviour version v3 on: who finds it, how it outlives its
machine with the home, and how the setup tries again after a failure."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from machines import documents, home, login, wheels, workspaces
from machines.disks import Disk
from machines.machine import Machine, status
from machines.waiting import until
from machines.workspaces import LOG, Workspace, as_owner, last_line

KEPT = "/home/developer/.gpu-workspace"
RESULT = "/var/lib/gpu-workspace/setup"


def test_a_command_that_ssh_runs_finds_the_environment(
    workspace: Callable[[str], Workspace],
) -> None:
    machine = workspace("digests").boot.machine
    machine.write("/etc/gpu-workspace/keys/developer", login.public_key(machine) + "\n")
    login.serve(machine)
    found = login.ssh(machine, "command -v python; python -c 'import cv2, torch'")
    assert found == "/opt/workspace/bin/python"
    assert "/usr/bin" in login.ssh(machine, "echo $PATH").split(":")
    settings = machine.says("sshd", "-T", "-C", "user=root,host=x,addr=127.0.0.1")
    assert "/opt/workspace" not in settings, "root runs nothing of the owner's"


def test_a_failed_setup_names_its_cause_and_is_tried_again(
    fresh: Callable[[], Machine],
) -> None:
    machine = fresh()
    # No server answers at this address.
    served = documents.with_packages_from("--index-url http://127.0.0.1:9/simple")
    boot = workspaces.image(machine, workspaces.DIGESTS, served).boot
    boot.finish()
    said = f"install OpenCV, no network (exit 1), see {LOG}"
    assert last_line(machine) == f"gpu-workspace setup FAILED: {said}"
    assert machine.says("cat", RESULT) == f"FAILED: {said}"
    # cloud-init is done: systemd repeats the setup, and people can log in meanwhile.
    assert status(machine)["status"] == "done"
    machine.run("sed", "-i", "1d", "/etc/gpu-workspace/requirements.txt")
    machine.run("env", "SETUP_RETRY_SECONDS=0", documents.SETUP)
    assert last_line(machine) == "gpu-workspace setup done"
    assert machine.says("cat", RESULT) == "done"
    assert machine.has("/var/lib/gpu-workspace/setup-done")
    unit = "gpu-workspace-setup.service"
    assert machine.says("systemd-analyze", "verify", unit) == ""


def test_the_setup_installs_nothing_that_the_image_has(
    fresh: Callable[[], Machine],
) -> None:
    machine = fresh()
    workspaces.complete(machine).boot.finish()
    log = machine.says("cat", LOG)
    assert last_line(machine) == "gpu-workspace setup done", log
    assert "Collecting" not in log
    shows = "python -c 'import cv2, torch; print(cv2.__version__, cv2.aruco.__name__)'"
    assert as_owner(machine, shows) == "4.12.0 cv2.aruco"


def test_an_image_without_python_is_named_by_the_step(
    fresh: Callable[[], Machine],
) -> None:
    machine = fresh()
    workspaces.image(machine, workspaces.DIGESTS).boot.finish()
    machine.run("mv", "/usr/bin/python3", "/usr/bin/python3.away")
    machine.run("env", "SETUP_RETRY_SECONDS=0", documents.SETUP, check=False)
    said = f"read workspace.json (exit 127), see {LOG}"
    assert last_line(machine) == f"gpu-workspace setup FAILED: {said}"


@pytest.fixture
def disk() -> Iterator[Disk]:
    with closing(Disk(1536)) as disk:
        yield disk


def test_what_the_owner_installed_outlives_the_machine_and_not_the_image(
    fresh: Callable[[], Machine], disk: Disk
) -> None:
    machine = _with_home(fresh(), disk)
    name, wheel = wheels.stub("wandb", "1.0")
    machine.write(f"/tmp/{name}", wheel)
    as_owner(machine, f"pip install --no-index /tmp/{name}")
    shows = "python -c 'import wandb, cv2, torch; print(wandb.__version__)'"
    assert as_owner(machine, shows) == "1.0"
    home.reboot(machine)

    machine = _with_home(fresh(), disk)
    assert as_owner(machine, shows) == "1.0"
    assert "Requirement already satisfied: numpy" in machine.says("cat", LOG)
    home.reboot(machine)

    machine = _with_home(fresh(), disk, "ami-0000000000000000f")
    missing = machine.run(
        *("runuser", "-u", "developer", "--", "bash", "-lc", shows), check=False
    )
    assert "No module named 'wandb'" in missing.stdout
    before = machine.says("cat", f"{KEPT}/packages-before.txt").splitlines()
    assert "wandb==1.0" in before
    home.reboot(machine)


def test_a_full_home_is_the_cause_of_a_setup_that_fails(
    fresh: Callable[[], Machine], disk: Disk
) -> None:
    machine = fresh()
    home.install(machine)
    disk.attach(machine, "nvme1n1")
    home.mount(machine)
    free = machine.says("df", "--output=avail", "--block-size=1", home.HOME)
    left = 4 << 20
    size = str(int(free.splitlines()[-1]) - left)
    machine.run("fallocate", "--length", size, f"{home.HOME}/thesis")
    home.reboot(machine)

    machine = fresh()
    disk.attach(machine, "nvme1n1")
    boot = workspaces.kept(machine).boot
    until("cloud-init", lambda: status(machine)["status"] == "done", 120)
    home.mount(machine)
    boot.finish()
    said = last_line(machine)
    assert "FAILED: create the virtual environment, disk full" in said, said


def _with_home(machine: Machine, disk: Disk, image: str | None = None) -> Machine:
    """A machine with the volume, after its setup."""
    disk.attach(machine, "nvme1n1")
    changes = [documents.with_settings(imageId=image)] if image else []
    boot = workspaces.kept(machine, *changes).boot
    until("cloud-init", lambda: status(machine)["status"] == "done", 120)
    home.mount(machine)
    boot.finish()
    assert last_line(machine) == "gpu-workspace setup done", machine.says("cat", LOG)
    return machine
