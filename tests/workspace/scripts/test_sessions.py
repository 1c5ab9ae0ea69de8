"""The environment of ssh sessions, and connections between nodes."""

import string
from pathlib import Path

import pytest

import places
import session_environment
import sshd_config

RUN = Path("/run/gpu-workspace")
NASTY = [
    "plain",
    "",
    "two words",
    'a "quoted" word',
    "it's",
    "back\\slash",
    'ends with \\"',
    "ends with \\",
    "# no comment",
    "$HOME `id` $(id) %h",
    "tab\tin it",
    "^=eth0,docker",
    "grüße",
    string.punctuation,
]


def as_sshd_splits(line: str) -> list[str]:
    """Splits a line like argv_split in OpenSSH's misc.c, but without comments."""
    words: list[str] = []
    at = 0
    while at < len(line):
        if line[at] in " \t":
            at += 1
            continue
        word, quote = "", ""
        while at < len(line):
            character, following = line[at], line[at + 1 : at + 2]
            if character == "\\" and (
                following in {"'", '"', "\\"} or (not quote and following == " ")
            ):
                at += 1
                word += following
            elif not quote and character in " \t":
                break
            elif not quote and character in "\"'":
                quote = character
            elif quote and character == quote:
                quote = ""
            else:
                word += character
            at += 1
        assert not quote, "sshd refuses the line"
        words.append(word)
    return words


def test_a_variable_reaches_sessions_as_it_is() -> None:
    variables = {f"NAME_{at}": value for at, value in enumerate(NASTY)}
    text = sshd_config.sshd(RUN, variables)
    (line,) = [line for line in text.splitlines() if line.startswith("SetEnv")]
    keyword, *words = as_sshd_splits(line)
    assert keyword == "SetEnv"
    assert dict(word.split("=", 1) for word in words) == variables


@pytest.mark.parametrize("value", ["two\nlines", "PermitRootLogin yes\r", "\nx"])
def test_a_variable_cannot_add_a_line_to_sshds_configuration(value: str) -> None:
    text = sshd_config.sshd(RUN, {"EVIL": value, "GOOD": "1"})
    assert "EVIL" not in text
    assert text == sshd_config.sshd(RUN, {"GOOD": "1"})


def test_sessions_find_the_workspaces_programs_first() -> None:
    path = sshd_config.session({"PATH": "/opt/conda/bin:/usr/bin"})["PATH"]
    own = "/opt/workspace/venv/bin:/opt/gpu-workspace/bin"
    assert path == f"{own}:/opt/conda/bin:/usr/bin"
    # If PATH already has the folders, they are not added again.
    assert sshd_config.session({"PATH": path})["PATH"] == path


def test_sessions_know_nothing_of_the_container_that_is_not_theirs() -> None:
    container = {"HOME": "/", "KUBERNETES_SERVICE_HOST": "10.96.0.1", "NCCL_DEBUG": "W"}
    found = sshd_config.session(container)
    assert "HOME" not in found and "KUBERNETES_SERVICE_HOST" not in found
    assert found["NCCL_DEBUG"] == "W"


def test_a_password_is_never_asked_for() -> None:
    lines = sshd_config.sshd(RUN, {}).splitlines()
    assert {
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "AuthenticationMethods publickey",
        "PermitRootLogin no",
        "AllowUsers developer",
    } <= set(lines)


def test_a_node_is_found_by_every_form_of_its_name() -> None:
    host = "vision-1.vision.team.svc.cluster.local"
    text = sshd_config.ssh(RUN, "vision", [host])
    (names,) = [line for line in text.splitlines() if line.startswith("Host ")]
    assert {"vision-1", "vision-1.vision", "vision-1.vision.team", host} <= set(
        names.split()
    )
    assert "  StrictHostKeyChecking yes\n" in text
    assert f"  HostName {host}\n" in text
    known = sshd_config.known_hosts("gpu-workspace-vision", "ssh-ed25519 AAAA\n")
    assert known == "gpu-workspace-vision ssh-ed25519 AAAA\n"
    assert "  HostKeyAlias gpu-workspace-vision\n" in text


def test_what_the_owner_sets_counts_on_every_node_and_the_nodes_own_does_not() -> None:
    session = {"NCCL_DEBUG": "WARN", "PET_NODE_RANK": "0", "PATH": "/a"}
    here = {**session, "NCCL_DEBUG": "INFO", "PET_NODE_RANK": "1", "MINE": "1"}
    here |= {"SSH_CONNECTION": "x", "PWD": "/", "TERM": "xterm"}
    changed = session_environment.changed(here, session)
    assert changed == {"NCCL_DEBUG": "INFO", "MINE": "1"}


def test_a_file_with_keys_is_never_readable_for_others(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("old")
    path.chmod(0o644)
    places.write(path, "new")
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["key"]
