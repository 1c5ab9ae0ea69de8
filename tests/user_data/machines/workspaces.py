"""Machines that boot the goldens' user data, each with what its user data expects."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from machines import documents, goldens, login, wheels
from machines.machine import Boot, Machine

# PyTorch from the image, OpenCV 4.8.0, root by sudo.
IMAGE = "new-workspace"
# PyTorch from an index, a newer OpenCV.
INDEX = "everything-asked-for"
# A policy that does not trust owners with root.
PLAIN = "only-an-owner"
# A home volume.
HOME = "on-demand-new"
# An agent.
AGENT = "with-an-agent"
HOME_AND_AGENT = "with-an-agent-and-a-home"

PYTORCH = "/srv/pytorch"


@dataclass
class Workspace:
    # As it was booted, with the test's key.
    document: str
    boot: Boot

    @property
    def settings(self) -> dict[str, str]:
        return documents.workspace(self.document)


def image(machine: Machine) -> Workspace:
    document = goldens.document(IMAGE)
    settings = documents.workspace(document)
    python = PurePosixPath(settings["pytorchPython"])
    machine.run("python3", "-m", "venv", "--without-pip", str(python.parent.parent))
    _, wheel = wheels.torch(settings["pytorchVersion"])
    machine.write("/tmp/torch.whl", wheel)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = machine.says(str(python), "-c", ask)
    machine.run(str(python), "-m", "zipfile", "-e", "/tmp/torch.whl", site)
    key = login.make_key(machine)
    return _boot(machine, documents.changed(document, documents.with_key(key)))


def index(machine: Machine, version: str | None = None) -> Workspace:
    """Its index has the version of PyTorch that was asked for, or another one."""
    document = goldens.document(INDEX)
    if version is None:
        # As the CUDA indexes name them.
        version = documents.workspace(document)["pytorchVersion"] + "+cu130"
    name, wheel = wheels.torch(version)
    machine.write(f"{PYTORCH}/{name}", wheel)
    for path, page in wheels.pages([name]).items():
        machine.write(f"{PYTORCH}/{path}", page)
    changes = [
        documents.with_key(login.make_key(machine)),
        documents.with_pytorch_index(f"file://{PYTORCH}"),
    ]
    return _boot(machine, documents.changed(document, *changes))


def plain(machine: Machine) -> Workspace:
    """Without software, which it is not asked for."""
    key = login.make_key(machine)
    changes = [documents.with_key(key), documents.without_setup]
    return _boot(machine, documents.changed(goldens.document(PLAIN), *changes))


def with_home(machine: Machine) -> Workspace:
    """Without software."""
    key = login.make_key(machine)
    changes = [documents.with_key(key), documents.without_setup]
    return _boot(machine, documents.changed(goldens.document(HOME), *changes))


def with_agent(machine: Machine) -> Workspace:
    """Without software, and without what its agent could be downloaded from."""
    key = login.make_key(machine)
    changes = [documents.with_key(key), documents.without_setup]
    return _boot(machine, documents.changed(goldens.document(AGENT), *changes))


def _boot(machine: Machine, document: str) -> Workspace:
    machine.write("/etc/pip.conf", "[global]\nindex-url = file:///srv/packages\n")
    return Workspace(document, machine.boot(document))
