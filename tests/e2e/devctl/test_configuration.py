"""ssh's configuration of people who have one already."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from devctl.program import Devctl

EXISTING = {
    "empty": "",
    "settings": "User bob\nHost *\n  ForwardAgent yes\n",
    "match": "Match host other exec true\n  User y\n",
    "windows": "Host a\r\n  User b\r\n",
}


def asked(devctl: Devctl, host: str) -> dict[str, str]:
    shown = subprocess.run(
        ["ssh", "-F", devctl.home / ".ssh/config", "-G", host],
        check=True,
        capture_output=True,
        text=True,
    )
    pairs = (line.partition(" ") for line in shown.stdout.splitlines())
    return {key: value for key, _, value in pairs}


@pytest.mark.parametrize("kind", EXISTING)
def test_an_existing_file_keeps_its_settings(devctl: Devctl, kind: str) -> None:
    file = devctl.home / ".ssh/config"
    file.write_bytes(EXISTING[kind].encode())
    shown = devctl.says("config-ssh")
    assert "+ Include" in shown and file.read_bytes() == EXISTING[kind].encode()
    devctl.says("config-ssh", "--write")
    settings = asked(devctl, "my-dev.ws")
    assert settings["user"] == "developer"
    assert settings["stricthostkeychecking"] == "true"
    assert str(devctl.program).split("/")[-1] in settings["proxycommand"]
    assert asked(devctl, "other.example.org")["user"] != "developer"
    assert "as it should be" in devctl.says("config-ssh", "--write")
    devctl.says("config-ssh", "--remove")
    assert file.read_bytes() == EXISTING[kind].encode()


def test_a_linked_and_a_read_only_file(devctl: Devctl, tmp_path: Path) -> None:
    file, target = devctl.home / ".ssh/config", tmp_path / "dotfiles"
    target.write_text("Host *\n  User bob\n")
    file.symlink_to(target)
    devctl.says("config-ssh", "--write")
    assert file.is_symlink() and target.read_text().startswith("Include ")
    devctl.says("config-ssh", "--remove")
    target.chmod(0o444)
    refused = devctl.refused(1, "config-ssh", "--write")
    assert "read-only" in refused and "it is as it was" in refused
    assert target.read_text() == "Host *\n  User bob\n"


def test_a_closed_standard_output_is_told(devctl: Devctl) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(
        [devctl.program, "config-ssh"],
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        env=devctl.variables(),
    )
    os.close(writer)
    assert ran.returncode == 1
    assert "standard output" in ran.stderr


def test_a_narrow_terminal_shows_names_whole(devctl: Devctl) -> None:
    devctl.says("create", "a-workspace", "cpu-small", "--no-wait")
    shown = subprocess.run(
        ["script", "-qec", f"stty cols 20; '{devctl.program}' list", "/dev/null"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=devctl.variables(),
    )
    assert "a-workspace" in shown.stdout, shown.stdout


def test_help_and_completions_need_no_cluster(devctl: Devctl) -> None:
    helped = devctl("--help")
    assert helped.returncode == 0 and "devctl create my-dev" in helped.stdout
    for shell in ("bash", "zsh", "fish"):
        assert "devctl" in devctl.says("completion", shell)


def test_kubectl_runs_it_as_its_plugin(devctl: Devctl, tmp_path: Path) -> None:
    (tmp_path / "kubectl-gpuws").symlink_to(devctl.program)
    path = f"{tmp_path}:{os.environ['PATH']}"
    ran = subprocess.run(
        ["kubectl", "gpuws", "whoami", "-o", "json"],
        check=True,
        capture_output=True,
        text=True,
        env={**devctl.variables(), "PATH": path},
    )
    assert json.loads(ran.stdout)["namespace"] == devctl.namespace
