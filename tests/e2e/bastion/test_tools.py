"""The tools that people use with SSH work through the bastion as they do without it."""

from collections.abc import Callable

import pytest

from devctl.program import Devctl
from devctl.test_tools import (
    test_a_jetbrains_gateways_order_works,
    test_an_editors_way_in_works,
    test_git_goes_over_ssh,
    test_many_files_go_by_rsync,
    test_the_agent_with_the_users_keys_is_forwarded_only_if_asked_for,
    test_the_tools_of_ssh_work,
    workspace,
)

# Tests and a fixture of another suite. Here, `devctl` and `instance` lead through the bastion.
__all__ = [
    "test_a_jetbrains_gateways_order_works",
    "test_an_editors_way_in_works",
    "test_git_goes_over_ssh",
    "test_many_files_go_by_rsync",
    "test_the_agent_with_the_users_keys_is_forwarded_only_if_asked_for",
    "test_the_tools_of_ssh_work",
    "workspace",
]


@pytest.fixture
def devctl(laptop: Devctl, monkeypatch: pytest.MonkeyPatch) -> Devctl:
    """devctl on a laptop. The tools find the laptop's ssh, too."""
    monkeypatch.setenv("PATH", laptop.environment["PATH"])
    return laptop


@pytest.fixture
def instance(devctl: Devctl) -> Callable[..., str]:
    """Creates an EC2 workspace that only the bastion reaches, and waits for it."""
    machine = ("--instance-type", "g4dn.xlarge", "--region", "us-east-1")
    return lambda name: devctl.says("create", name, *machine, "--opencv", "4.8.0")
