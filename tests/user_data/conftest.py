"""Fixtures: machines, and workspaces on them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from machines import documents, goldens, machine, prerequisites, root, wheels
from machines import workspaces
from machines.machine import Machine
from machines.root import Root
from machines.workspaces import Workspace

Start = Callable[[], Machine]


@pytest.fixture(scope="session")
def base() -> Root:
    try:
        prerequisites.ensure()
    except LookupError as missing:
        pytest.exit(str(missing), returncode=1)
    return root.ensure()


@pytest.fixture(scope="session")
def packages(base: Root) -> Path:
    """The folder with the package index for all machines."""
    rendered = [d for name in goldens.names() for d in goldens.documents(name)]
    return wheels.ensure(base.python, {documents.requirements(d) for d in rendered})


@pytest.fixture(scope="session")
def start(base: Root, packages: Path) -> Iterator[Start]:
    """Starts machines that run until the end of the session."""
    with ExitStack() as machines:
        yield lambda: machines.enter_context(machine.started(base, packages))


@pytest.fixture
def fresh(base: Root, packages: Path) -> Iterator[Start]:
    """Starts machines that run until the end of the test."""
    with ExitStack() as machines:
        yield lambda: machines.enter_context(machine.started(base, packages))


@pytest.fixture(scope="session")
def workspace(start: Start) -> Callable[[str], Workspace]:
    """Booted workspaces by name. They boot in parallel, to save time."""
    booting = {
        "image": workspaces.image(start()),
        "index": workspaces.index(start()),
        "digests": workspaces.image(start(), workspaces.DIGESTS),
        "tampered": workspaces.image(
            start(), workspaces.DIGESTS, documents.with_another_digest
        ),
        "failing": workspaces.index(start(), version="1.0"),
        "plain": workspaces.plain(start()),
    }

    def booted(name: str) -> Workspace:
        booting[name].boot.finish()
        return booting[name]

    return booted
