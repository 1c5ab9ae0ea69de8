"""devctl beside Argo CD: a workspace is a commit, and no command starts a sync fight."""

from pathlib import Path

import pytest

from cluster.workspaces import Key
from devctl.conftest import program
from devctl.program import Devctl, installed
from environment.cluster import CLAIMS, Cluster
from environment.ec2 import Ec2
from environment.platform import Platform
from gitops.argo import ArgoCd
from gitops.git import Repository, git
from gitops.repositories import claim

# Fixtures of other suites.
__all__ = ["program"]

NAME = "tool"
APPLICATION = f"ws.vision.{NAME}"


@pytest.fixture
def devctl(program: Path, team: Platform, tmp_path: Path) -> Devctl:
    key = Key.generate(tmp_path, "alice")
    return installed(program, tmp_path / "home", team.namespace, key)


def test_devctl_commits_a_workspace_and_fights_no_sync(
    cluster: Cluster,
    team: Platform,
    workspaces: Repository,
    argocd: ArgoCd,
    ec2: Ec2,
    devctl: Devctl,
    tmp_path: Path,
) -> None:
    folder = workspaces.folder
    git(folder, "config", "user.name", "Alice")
    git(folder, "config", "user.email", "alice@acme.io")
    git(folder, "branch", "--set-upstream-to=origin/main", "main")
    wish = tmp_path / "wish.yaml"
    limit = {"maxLifetime": "1h"}
    wish.write_text(claim(NAME, instanceType="g4dn.xlarge", lifecycle=limit))

    create = ("create", "-f", str(wish), "--git", "--push")
    created = devctl(*create, folder=folder)
    assert created.returncode == 0, created.stderr
    assert f"{NAME} is Ready" in created.stdout
    assert (folder / f"workspaces/{NAME}/claim.yaml").exists()
    again = devctl(*create, folder=folder)
    assert again.returncode == 0 and "is as asked for" in again.stderr, again.stderr

    def syncs(expected: int) -> None:
        application = argocd.application(APPLICATION)
        assert application["status"]["sync"]["status"] == "Synced"
        assert argocd.operations(APPLICATION) == expected

    argocd.await_health(APPLICATION, "Healthy", seconds=120)
    assert "may run until" in devctl.says("extend", NAME, "10m")
    assert "is stopped" in devctl.says("stop", NAME)
    argocd.await_health(APPLICATION, "Suspended", seconds=90)
    assert ec2.live(team.namespace) == []
    assert devctl.says("start", NAME) == f"{NAME} is Ready\n"
    argocd.await_health(APPLICATION, "Healthy", seconds=120)
    syncs(1)

    # Argo CD would create it again.
    refused = devctl.refused(4, "delete", NAME, "--yes")
    assert f"devctl delete {NAME} --git" in refused
    assert len(ec2.live(team.namespace)) == 1
    deleted = devctl("delete", NAME, "--git", "--push", "--yes", folder=folder)
    assert deleted.returncode == 0, deleted.stderr
    assert deleted.stdout == f"{NAME} is deleted\n"
    assert cluster.get(CLAIMS, NAME, team.namespace) is None
    assert ec2.live(team.namespace) == []
