"""Logins to a booted workspace: the keys and users that it accepts."""

from collections.abc import Callable

import pytest

from machines import documents, login
from machines.workspaces import Workspace

AUTHORIZED = "/home/developer/.ssh/authorized_keys"


@pytest.fixture(scope="module")
def serving(workspace: Callable[[str], Workspace]) -> Callable[[str], Workspace]:
    """Workspaces by name, with sshd on port 22 of each one's own network."""
    running: set[str] = set()

    def serve(name: str) -> Workspace:
        served = workspace(name)
        machine = served.boot.machine
        if name not in running:
            login.serve(machine)
            running.add(name)
        return served

    return serve


@pytest.mark.parametrize("name", ["image", "index", "plain"])
def test_the_owner_logs_in_by_key(
    serving: Callable[[str], Workspace], name: str
) -> None:
    machine = serving(name).boot.machine
    assert login.ssh(machine, "id -un && pwd") == "developer\n/home/developer"


@pytest.mark.parametrize("name", ["image", "index", "plain"])
def test_nobody_elses_key_is_authorized(
    workspace: Callable[[str], Workspace], name: str
) -> None:
    asked = workspace(name)
    machine = asked.boot.machine
    authorized = machine.says("cat", AUTHORIZED).splitlines()
    assert sorted(authorized) == sorted(documents.keys(asked.document))
    places = [AUTHORIZED.removesuffix("/authorized_keys"), AUTHORIZED]
    modes = machine.says("stat", "-c", "%a %U:%G", *places).splitlines()
    assert modes == ["700 developer:developer", "600 developer:developer"]
    others = machine.says(
        *[
            "find",
            "/root",
            "/home",
            "-name",
            "authorized_keys*",
            "!",
            "-path",
            AUTHORIZED,
        ],
        *["-size", "+0"],
    )
    assert others == ""


def test_a_password_opens_nothing(serving: Callable[[str], Workspace]) -> None:
    machine = serving("image").boot.machine
    machine.run("sshd", "-t")
    settings = machine.says("sshd", "-T").splitlines()
    assert {"passwordauthentication no", "permitemptypasswords no"} <= set(settings)
    (password,) = machine.says("getent", "shadow", "developer").split(":")[1:2]
    assert password.startswith(("!", "*"))
    refused = login.ssh_by_password(machine)
    assert refused.returncode == 255
    assert "Permission denied (publickey)" in refused.stdout


def test_sudo_needs_no_password_where_the_policy_trusts_owners(
    serving: Callable[[str], Workspace],
) -> None:
    machine = serving("image").boot.machine
    assert login.ssh(machine, "sudo -n id -un") == "root"


def test_sudo_is_refused_where_the_policy_does_not_trust_owners(
    serving: Callable[[str], Workspace],
) -> None:
    machine = serving("plain").boot.machine
    as_owner = ["runuser", "-u", "developer", "--", "sudo", "-n", "true"]
    assert machine.run(*as_owner, check=False).returncode != 0
    assert machine.says("id", "-nG", "developer") == "developer"


def test_a_shell_of_root_runs_nothing_that_the_owner_may_write(
    workspace: Callable[[str], Workspace],
) -> None:
    machine = workspace("image").boot.finish()
    path = machine.says("bash", "-lc", 'echo "$PATH"').split(":")
    assert "/opt/workspace/bin" not in path
