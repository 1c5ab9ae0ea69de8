"""devctl on a laptop whose only way is the bastion: no kubeconfig, no other credential."""

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bastion.door import PORT, Visitor
from cluster.workspaces import Workspaces
from devctl.conftest import program
from devctl.program import Devctl

# Fixtures of other suites.
__all__ = ["program"]


@pytest.fixture
def laptop(
    program: Path, alice: Workspaces, enter: Callable[..., Visitor], tmp_path: Path
) -> Devctl:
    """devctl with a home folder that has ssh's configuration for the bastion."""
    visitor = enter(alice)
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    config = home / ".ssh/config"
    config.write_text(
        f"Host bastion\n  HostName {visitor.address}\n  Port {PORT}\n"
        f"  User {visitor.name}\n  IdentityFile {alice.key.private}\n"
        f"  UserKnownHostsFile {visitor.known_hosts}\n  StrictHostKeyChecking yes\n"
        "  IdentitiesOnly yes\n  BatchMode yes\n"
    )
    # ssh takes the home folder from the user database, and not from HOME.
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("ssh", "scp"):
        tool = tools / name
        real = f"/usr/bin/{name}"
        tool.write_text(f'#!/bin/sh\nexec {real} -F {shlex.quote(str(config))} "$@"\n')
        tool.chmod(0o755)
    way = {
        "DEVCTL_BASTION": "bastion",
        "KUBECONFIG": str(tmp_path / "none"),
        "PATH": f"{tools}:{os.environ['PATH']}",
    }
    return Devctl(program, home, alice.namespace, alice.key, way)


def test_the_first_documents_workflow_needs_the_bastion_only(
    laptop: Devctl, alice: Workspaces, tmp_path: Path
) -> None:
    assert alice.namespace in laptop.says("whoami")
    assert "is Ready" in laptop.says("create", "my-dev", "--flavor", "cpu-small")
    assert laptop.says("ssh", "my-dev", "--", "id -un") == "developer\n"
    (tmp_path / "train.py").write_text("print('trained')\n")
    laptop.says("cp", str(tmp_path / "train.py"), "my-dev:train.py")
    assert laptop.says("ssh", "my-dev", "--", "cat train.py") == "print('trained')\n"
    assert "my-dev" in laptop.says("list", "-o", "name")
    assert "is stopped" in laptop.says("stop", "my-dev")
    refused = laptop.refused(7, "ssh", "my-dev", "--", "true")
    assert "devctl start my-dev" in refused
    assert "is deleted" in laptop.says("delete", "my-dev", "--yes")


def test_ssh_of_a_workspace_goes_through_the_bastion(
    laptop: Devctl, tmp_path: Path
) -> None:
    laptop.says("create", "my-dev", "cpu-small")
    laptop.says("config-ssh", "--write")
    ran = subprocess.run(
        ["ssh", "-F", laptop.home / ".ssh/config", "my-dev.ws", "id -un"],
        capture_output=True,
        text=True,
        env=laptop.variables(),
    )
    assert (ran.returncode, ran.stdout) == (0, "developer\n"), ran.stderr


def test_a_bastion_that_is_away_is_named_with_the_next_step(
    program: Path, alice: Workspaces, tmp_path: Path
) -> None:
    way = {"DEVCTL_BASTION": "nobody@127.0.0.1"}
    away = Devctl(program, tmp_path, alice.namespace, alice.key, way)
    refused = away.refused(9, "list")
    assert "ssh nobody@127.0.0.1 whoami" in refused
