"""A setup that does not end well, on instances that boot and have no agent: what the claim
says, and how the same workspace becomes Ready once the cause is mended."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest

from cluster.workspaces import Key
from environment import variants
from environment.cluster import Cluster, condition
from environment.ec2 import Ec2
from environment.objects import Object
from environment.platform import Platform
from environment.waiting import until
from lifecycle.conftest import BOOTING_IMAGE, PYTORCH, host
from lifecycle.life import now
from lifecycle.machine import Machine

NOBODY = "http://127.0.0.1:9/simple"
MULTIPLY = """\
python -c '
import cv2, numpy, torch
two = 2 * numpy.eye(2)
assert cv2.gemm(two, two, 1, None, 0).tolist() == [[4, 0], [0, 4]]
assert (torch.tensor(two) @ torch.tensor(two)).tolist() == [[4, 0], [0, 4]]
print(cv2.__version__, torch.__version__)'
"""
SETUP = "/usr/local/lib/gpu-workspace/setup"


@dataclass
class Supplied:
    """A workspace with a catalogue and a policy of its own."""

    cluster: Cluster
    machine: Machine

    @property
    def name(self) -> str:
        return f"setup-{self.machine.namespace}"

    def catalogue(self, **packages: object) -> None:
        images = {"us-east-1": {"default": BOOTING_IMAGE}}
        data = {"images": images, "packages": packages}
        variants.catalogue(self.cluster, self.name, data)

    def policy(self, **instance: object) -> None:
        policy: Object = {
            "catalogue": {"name": self.name},
            "instance": {"sudo": True, **instance},
            "minimumRefreshInterval": "10s",
        }
        self.machine.composition = variants.composition(self.cluster, self.name, policy)

    def failed(self, *parts: str) -> Object:
        """The status, once the setup failed. The owner can log in meanwhile."""
        machine = self.machine
        software = machine.platform.condition(
            machine.name, "SoftwareReady", "False", "SetupFailed", seconds=240
        )
        for part in parts:
            assert part in software["message"], software
        status = machine.status()
        assert status["phase"] == "Failed"
        self.was_never_ready()
        assert machine.run("id -un") == "developer"
        return status

    def software(self) -> tuple[str, str]:
        seen = condition(
            self.machine.platform.workspace(self.machine.name), "SoftwareReady"
        )
        return seen.get("status", ""), seen.get("reason", "")

    def was_never_ready(self) -> None:
        assert "readyAt" not in self.machine.lifecycle()

    def works(self, seconds: float = 300) -> Object:
        """The status, once the workspace is Ready and its owner can work."""
        status = self.machine.logged_in(seconds)
        shown = subprocess.run(
            ["ssh-keyscan", status["publicIp"]],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        seen = {line.split(" ", 1)[1] for line in shown.splitlines() if line[0] != "#"}
        assert seen == set(status["hostKeys"])
        said = self.machine.run(MULTIPLY)
        assert said.startswith(f"{status['opencvVersion']} {PYTORCH}"), said
        return status


@pytest.fixture
def supplied(
    cluster: Cluster, platform: Platform, ec2: Ec2, tmp_path: Path
) -> Supplied:
    key = Key.generate(tmp_path, "key")
    machine = Machine(platform, "", ec2, key=key, here=f"{host()}/32")
    supplied = Supplied(cluster, machine)
    supplied.policy()
    return supplied


@pytest.fixture
def silent() -> Iterator[str]:
    """The URL of a package index that accepts connections and never answers."""
    taken: list[socket.socket] = []

    def take(listening: socket.socket) -> None:
        while True:
            try:
                taken.append(listening.accept()[0])
            except OSError:
                return

    with socket.create_server((host(), 0), backlog=64) as listening:
        Thread(target=take, args=[listening], daemon=True).start()
        address, port = listening.getsockname()
        yield f"https://{address}:{port}/simple"
        listening.shutdown(socket.SHUT_RDWR)
    for connection in taken:
        with closing(connection):
            pass


def test_a_setup_that_reaches_no_index_says_so_until_the_catalogue_is_mended(
    supplied: Supplied,
) -> None:
    supplied.catalogue(indexUrl=NOBODY)
    supplied.machine.commit({})
    first = supplied.failed("install OpenCV", "no network", "the platform team")
    supplied.catalogue()
    assert supplied.works()["instanceId"] != first["instanceId"]


def test_a_release_that_does_not_exist_says_so_until_the_claim_is_mended(
    supplied: Supplied,
) -> None:
    line = f"opencv-python-headless==4.99.0.1 --hash=sha256:{'0' * 64}"
    supplied.catalogue(opencv={"4.99.0": [line]})
    supplied.machine.commit({}, opencvVersion="4.99.0")
    first = supplied.failed("install OpenCV", "no such version", "opencvVersion")
    supplied.machine.commit({}, opencvVersion="4.8.0")
    assert supplied.works()["instanceId"] != first["instanceId"]


def test_a_setup_waits_while_another_program_holds_apts_lock_for_two_minutes(
    supplied: Supplied,
) -> None:
    supplied.policy(tags={"emulator-busy-apt": "120"})
    supplied.catalogue()
    begun = now()
    supplied.machine.commit({})
    told: set[tuple[str, str]] = set()

    def is_ready() -> bool:
        told.add(supplied.software())
        return ("True", "Installed") in told

    until("the software", is_ready, 400)
    assert (now() - begun).total_seconds() > 120
    assert told - {("", "")} == {("False", "SettingUp"), ("True", "Installed")}
    supplied.works()


def test_a_setup_that_is_killed_is_tried_again_and_nobody_calls_it_ready_before(
    supplied: Supplied, silent: str
) -> None:
    machine = _waiting(supplied, silent)
    for _ in range(3):
        _kill(machine)
    assert supplied.software() == ("False", "SettingUp")
    supplied.was_never_ready()
    first = machine.status()["instanceId"]
    # The owner, who has sudo, mends it on the machine.
    files = "/etc/gpu-workspace"
    machine.run(f"sudo sed -i /--index-url/d {files}/requirements.txt")
    index = '"packageIndexUrl":"[^"]*",'
    machine.run(f"sudo sed -i 's/{index}//' {files}/workspace.json")
    _kill(machine)
    assert supplied.works()["instanceId"] == first


@pytest.mark.thorough
def test_a_setup_that_says_nothing_is_unknown_after_fifteen_minutes_and_still_mended(
    supplied: Supplied, silent: str
) -> None:
    machine = _waiting(supplied, silent)
    machine.run("sudo sed -i 's/pip -r/exec 3>\\&-; sleep 3600; pip -r/' " + SETUP)
    _kill(machine)
    begun = now()
    software = machine.platform.condition(
        machine.name, "SoftwareReady", "Unknown", "SetupUnknown", seconds=17 * 60
    )
    assert (now() - begun).total_seconds() > 12 * 60
    assert "/var/log/gpu-workspace-setup.log" in software["message"]
    supplied.was_never_ready()
    first = machine.status()["instanceId"]
    supplied.catalogue()
    assert supplied.works()["instanceId"] != first


def _waiting(supplied: Supplied, silent: str) -> Machine:
    """A machine whose setup waits for an index that never answers. Its owner can log in."""
    machine = supplied.machine
    supplied.catalogue(indexUrl=silent)
    machine.commit({})
    until("host keys", lambda: machine.status().get("hostKeys"), 180)
    until("a login", lambda: machine.ssh("true").returncode == 0)
    return machine


def _kill(machine: Machine) -> None:
    """Kills a setup that runs, as the kernel does that has no memory left."""

    # The brackets keep the command from finding itself.
    def process() -> str | None:
        return machine.ssh("pgrep -of 'gpu-workspace/[s]etup'").stdout.strip() or None

    found = until("a setup that runs", process, 60)
    for pattern in ("gpu-workspace/[s]etup", "pip [i]nstall"):
        machine.ssh(f"sudo pkill -KILL -f '{pattern}'")
    until("its end", lambda: process() != found)
