"""Machines that boot the goldens' user data, with the packages that it needs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from machines import documents, goldens, login, wheels
from machines import image as machine_image
from machines.machine import Boot, Machine

# Cases of the function's goldens. First: PyTorch in the image, OpenCV 4.8.0, and sudo.
IMAGE = "new-workspace"
# PyTorch from an index, and a newer OpenCV.
INDEX = "everything-asked-for"
# Version v3: PyTorch in the image, and wheels with digests.
DIGESTS = "v3-keys-of-the-dev-user"
# Version v3: certificates of the platform.
CERTIFICATES = "v3-certificates-of-the-platform"
# Version v3: OpenCV and PyTorch in the image.
COMPLETE = "v3-image-with-opencv"
# Version v3: a home volume, an agent, and PyTorch from an index.
KEPT = "v3-largest-user-data"
# The policy does not give owners root.
PLAIN = "only-an-owner"
# A home volume.
HOME = "on-demand-new"
# An agent.
AGENT = "with-an-agent"
HOME_AND_AGENT = "with-an-agent-and-a-home"

PYTORCH = "/srv/pytorch"
# The log of the setup.
LOG = "/var/log/gpu-workspace-setup.log"

Change = Callable[[dict[str, Any]], None]


@dataclass
class Workspace:
    # The booted user data, with the test's key.
    document: str
    boot: Boot

    @property
    def settings(self) -> dict[str, str]:
        return documents.workspace(self.document)


def last_line(machine: Machine) -> str:
    """The last line of the setup's log."""
    return machine.says("tail", "-n", "1", LOG)


def as_owner(machine: Machine, command: str) -> str:
    """The output of a command in a login shell of the owner."""
    return machine.says("runuser", "-u", "developer", "--", "bash", "-lc", command)


def image(machine: Machine, case: str = IMAGE, *changes: Change) -> Workspace:
    document = goldens.document(case)
    _make_python(machine, documents.workspace(document))
    key = documents.with_key(login.make_key(machine))
    return _boot(machine, documents.changed(document, key, *changes))


def complete(machine: Machine) -> Workspace:
    """The case COMPLETE: the image has what the setup would install."""
    document = goldens.document(COMPLETE)
    python, site = _make_python(machine, documents.workspace(document))
    wheels = "/srv/packages/opencv_contrib*-4.12.*.whl /srv/packages/numpy-2.*.whl"
    extract = f'{python} -m zipfile -e "$wheel" {site}'
    machine.run("sh", "-ec", f"for wheel in {wheels}; do {extract}; done")
    return _boot(machine, document)


def _make_python(machine: Machine, settings: dict[str, str]) -> tuple[str, str]:
    """Makes the image's interpreter, with PyTorch. Returns it, and its packages' folder."""
    python = PurePosixPath(settings.get("python") or settings["pytorchPython"])
    machine.run("python3", "-m", "venv", "--without-pip", str(python.parent.parent))
    _, wheel = wheels.torch(settings["pytorchVersion"])
    machine.write("/tmp/torch.whl", wheel)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = machine.says(str(python), "-c", ask)
    machine.run(str(python), "-m", "zipfile", "-e", "/tmp/torch.whl", site)
    return str(python), site


def index(machine: Machine, version: str | None = None) -> Workspace:
    """A workspace whose index has the requested version of PyTorch, or `version`."""
    document = goldens.document(INDEX)
    key = documents.with_key(login.make_key(machine))
    served = _serve_pytorch(machine, document, version)
    return _boot(machine, documents.changed(document, key, served))


def kept(machine: Machine, *changes: Change) -> Workspace:
    """The case KEPT. Its setup waits for the home."""
    document = goldens.document(KEPT)
    served = _serve_pytorch(machine, document)
    packages = documents.with_packages_from()
    return _boot(machine, documents.changed(document, served, packages, *changes))


def plain(machine: Machine) -> Workspace:
    """The case PLAIN, booted without the installation of software."""
    key = login.make_key(machine)
    changes = [documents.with_key(key), documents.without_setup]
    return _boot(machine, documents.changed(goldens.document(PLAIN), *changes))


def with_home(machine: Machine) -> Workspace:
    """The case HOME, booted without the installation of software."""
    key = login.make_key(machine)
    changes = [documents.with_key(key), documents.without_setup]
    return _boot(machine, documents.changed(goldens.document(HOME), *changes))


def with_agent(machine: Machine) -> Workspace:
    """The case AGENT, without software, and without a server that has the agent."""
    key = login.make_key(machine)
    changes = [documents.with_key(key), documents.without_setup]
    return _boot(machine, documents.changed(goldens.document(AGENT), *changes))


def _serve_pytorch(
    machine: Machine, document: str, version: str | None = None
) -> Change:
    if version is None:
        # The CUDA indexes have such versions.
        version = documents.workspace(document)["pytorchVersion"] + "+cu130"
    name, wheel = wheels.torch(version)
    machine.write(f"{PYTORCH}/{name}", wheel)
    for path, page in wheels.pages([name]).items():
        machine.write(f"{PYTORCH}/{path}", page)
    return documents.with_pytorch_index(f"file://{PYTORCH}")


def _boot(machine: Machine, document: str) -> Workspace:
    machine.write("/etc/pip.conf", machine_image.PIP)
    return Workspace(document, machine.boot(document))
