"""devctl on a laptop whose only way is the bastion: no kubeconfig, no other credential."""

import subprocess
from pathlib import Path

from cluster.workspaces import Workspaces
from devctl.program import Devctl


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
