"""devctl works alike where users write the composite itself."""

from pathlib import Path

import pytest

from cluster.workspaces import Key
from devctl.conftest import program
from devctl.program import Devctl, installed
from environment.ec2 import Ec2
from environment.platform import Platform
from environment.waiting import until

# Fixtures of other suites.
__all__ = ["program"]


@pytest.fixture
def devctl(program: Path, platform: Platform, tmp_path: Path) -> Devctl:
    key = Key.generate(tmp_path, "alice")
    return installed(program, tmp_path / "home", platform.namespace, key)


def test_a_workspace_lives_from_create_to_delete(
    platform: Platform, ec2: Ec2, devctl: Devctl
) -> None:
    create = (
        *("create", "work", "--instance-type", "g4dn.xlarge", "--opencv", "4.8.0"),
        *("--region", "us-east-1", "--owner", "alice", "--allow", "203.0.113.0/24"),
        *("--key", str(devctl.key.private.with_suffix(".pub"))),
    )
    assert "work is Ready" in devctl.says(*create)
    again = devctl(*create)
    assert "exists, and is as asked for" in again.stdout + again.stderr
    refused = devctl.refused(5, *create, "--capacity", "on-demand")
    assert "capacityType" in refused
    assert devctl.says("list", "-o", "name") == "work\n"
    assert "g4dn.xlarge" in devctl.says("show", "work")
    assert devctl.object("why", "work")["causes"] == []

    assert "is stopped" in devctl.says("stop", "work")
    assert ec2.live(platform.namespace) == []
    (cause,) = devctl.object("why", "work")["causes"]
    assert cause["next"] == ["devctl start work"]
    assert devctl.says("start", "work") == "work is Ready\n"
    assert len(ec2.live(platform.namespace)) == 1

    devctl.says("delete", "work", "--yes")
    assert "work" in devctl.refused(3, "show", "work")
    until("the instance to end", lambda: ec2.live(platform.namespace) == [], 120)
