"""Fixtures for tests on a cluster. They need KUBECONFIG, and the image's reference in
WORKSPACE_IMAGE, as `cargo xtask image workspace` prints it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from on_cluster import ssh, work, workspaces
from on_cluster.ssh import Login
from on_cluster.workspaces import Workspace


@pytest.fixture(scope="session")
def image() -> str:
    if reference := os.environ.get("WORKSPACE_IMAGE"):
        return reference
    pytest.exit(
        "WORKSPACE_IMAGE is not set: cargo xtask image workspace --name <cluster>",
        returncode=1,
    )


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the key pairs `owner` and `other`."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ["owner", "other"]:
        ssh.make_key(folder / name)
    return folder


@pytest.fixture(scope="session")
def owner(keys: Path) -> str:
    return (keys / "owner.pub").read_text().strip()


@pytest.fixture(scope="session")
def gang(image: str, owner: str) -> Iterator[Workspace]:
    """A workspace of two nodes that are ready."""
    workspaces.namespace()
    made = workspaces.apply("gang", image, [owner], nodes=2, change=work.mounted)
    made.wait()
    yield made
    workspaces.delete("gang")


@pytest.fixture(scope="session")
def login(gang: Workspace, keys: Path) -> Login:
    """The owner's login, with the host key in the Secret."""
    public = gang.secret()["ssh_host_ed25519_key.pub"]
    return Login(keys / "owner", ssh.known(keys / "known_hosts", public))
