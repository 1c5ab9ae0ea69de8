"""The result of the setup on a booted workspace, and the setup's reports."""

import json
import subprocess
from collections.abc import Callable

import pytest

from machines import documents, workspaces
from machines.machine import Machine, status
from machines.waiting import until
from machines.workspaces import LOG, Workspace, last_line

VENV = "/opt/workspace/bin/python"
REPORT = """
import cv2, json, numpy, torch
from importlib.metadata import distributions
names = sorted(d.metadata["Name"].lower() for d in distributions())
print(json.dumps({
    "opencv": cv2.__version__, "numpy": numpy.__version__, "torch": torch.__version__,
    "torch_file": torch.__file__, "from": [n for n in names if n.startswith("opencv")],
    "halved": cv2.resize(numpy.zeros((4, 6), numpy.uint8), (3, 2)).shape,
}))
"""
# Prints mode, owner, link target and content of each file that the setup could change.
STATE = """
cd /
find etc home opt usr/local -printf '%y %m %u:%g %p %l\\n' | sort
find etc home opt usr/local -type f -exec sha256sum {} + | sort
"""
works = pytest.mark.parametrize("name", ["image", "index", "digests"])


def report(machine: Machine) -> dict[str, object]:
    said = machine.says("runuser", "-u", "developer", "--", VENV, "-c", REPORT)
    found = json.loads(said)
    assert isinstance(found, dict)
    return found


@works
def test_cloud_init_and_the_log_say_that_the_setup_is_done(
    workspace: Callable[[str], Workspace], name: str
) -> None:
    machine = workspace(name).boot.machine
    assert last_line(machine) == "gpu-workspace setup done", machine.says("cat", LOG)
    said = status(machine)
    assert (said["status"], said["errors"]) == ("done", []), said
    # cloud-init has this field from version 23.4 on.
    assert not said.get("recoverable_errors")
    warnings = "WARNING|ERROR|CRITICAL|DEPRECATED|Traceback"
    found = machine.run("grep", "-E", warnings, "/var/log/cloud-init.log", check=False)
    assert found.stdout == ""


@works
def test_the_asked_opencv_imports_and_is_the_only_one(
    workspace: Callable[[str], Workspace], name: str
) -> None:
    asked = workspace(name)
    found = report(asked.boot.machine)
    wanted = asked.settings["opencvVersion"].split(".")[:3]
    assert str(found["opencv"]).split(".")[:3] == wanted
    assert found["from"] == ["opencv-python-headless"]
    assert found["halved"] == [2, 3]


def test_an_old_opencv_gets_the_numpy_that_it_was_built_for(
    workspace: Callable[[str], Workspace],
) -> None:
    found = report(workspace("image").boot.machine)
    assert str(found["numpy"]).startswith("1.")


def test_pytorch_of_the_image_is_used_where_it_lies(
    workspace: Callable[[str], Workspace],
) -> None:
    asked = workspace("image")
    found = report(asked.boot.machine)
    assert found["torch"] == asked.settings["pytorchVersion"]
    assert str(found["torch_file"]).startswith("/opt/pytorch/")


def test_pytorch_of_the_index_is_installed(
    workspace: Callable[[str], Workspace],
) -> None:
    asked = workspace("index")
    found = report(asked.boot.machine)
    assert found["torch"] == asked.settings["pytorchVersion"] + "+cu130"
    assert str(found["torch_file"]).startswith("/opt/workspace/")


@works
def test_a_login_shell_finds_the_environment_first(
    workspace: Callable[[str], Workspace], name: str
) -> None:
    machine = workspace(name).boot.machine
    find = "command -v python python3 pip"
    login = machine.says("runuser", "-u", "developer", "--", "bash", "-lc", find)
    places = [f"/opt/workspace/bin/{name}" for name in ("python", "python3", "pip")]
    assert login.splitlines() == places


@works
def test_the_owner_adds_packages_without_root(
    workspace: Callable[[str], Workspace], name: str
) -> None:
    machine = workspace(name).boot.machine
    owners = machine.says("find", "/opt/workspace", "!", "-user", "developer")
    assert owners == ""


@pytest.mark.parametrize(
    "name", ["image", pytest.param("index", marks=pytest.mark.thorough)]
)
def test_a_second_setup_succeeds_and_changes_nothing(
    workspace: Callable[[str], Workspace], name: str
) -> None:
    machine = workspace(name).boot.machine
    before = machine.says("sh", "-c", STATE)
    machine.run(documents.SETUP)
    assert last_line(machine) == "gpu-workspace setup done"
    assert machine.says("sh", "-c", STATE) == before


def test_a_failed_setup_names_its_step_and_cloud_init_reports_it(
    workspace: Callable[[str], Workspace],
) -> None:
    machine = workspace("failing").boot.machine
    said = "gpu-workspace setup FAILED: install PyTorch (exit 1), see " + LOG
    assert last_line(machine) == said
    reported = status(machine)
    assert reported["status"] == "error"
    assert "scripts" in str(reported["errors"])
    output = machine.says("cat", "/var/log/cloud-init-output.log")
    assert said in output


def test_a_file_with_another_digest_is_not_installed(
    workspace: Callable[[str], Workspace],
) -> None:
    machine = workspace("tampered").boot.machine
    said = (
        f"gpu-workspace setup FAILED: install OpenCV, wrong digest (exit 1), see {LOG}"
    )
    assert last_line(machine) == said
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in machine.says("cat", LOG)
    found = machine.says("sh", "-c", "ls /opt/workspace/lib/python3*/site-packages")
    assert "cv2" not in found and "numpy" not in found


HOLD = """
import fcntl, sys
lists = open("/var/lib/apt/lists/lock", "w")
fcntl.lockf(lists, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.thorough
def test_the_setup_waits_for_another_apt(fresh: Callable[[], Machine]) -> None:
    machine = fresh()
    holder = subprocess.Popen(
        machine.command("python3", "-c", HOLD),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    boot = workspaces.image(machine).boot
    refused = "Could not get lock /var/lib/apt/lists/lock"
    until(
        "apt to be refused",
        lambda: refused in machine.says("sh", "-c", f"cat {LOG} || :"),
    )
    holder.communicate("")
    boot.finish()
    assert last_line(machine) == "gpu-workspace setup done", machine.says("cat", LOG)
