"""People log in with certificates of an authority that the platform trusts."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bastion.door import Door, Visitor
from cluster.workspaces import Key, Workspaces
from environment.cluster import Cluster
from environment.waiting import until

Enter = Callable[..., Visitor]


def sign(authority: Path, key: Key, *options: str) -> None:
    """Makes the certificate beside the key, where ssh finds it."""
    certificate = key.private.with_name(f"{key.private.name}-cert.pub")
    certificate.unlink(missing_ok=True)
    words = ["ssh-keygen", "-q", "-s", authority, *options]
    subprocess.run([*words, key.private.with_suffix(".pub")], check=True)
    assert certificate.exists()


@pytest.fixture
def fresh(
    alice: Workspaces, enter: Enter, door: Door, cluster: Cluster, tmp_path: Path
) -> Callable[[], tuple[Visitor, Key]]:
    """Another key of alice, whose DevUser has no keys any more."""
    enter(alice)
    patch = ("patch", "devuser", alice.owner, "--type=merge", "-p")
    cluster.kubectl(*patch, json.dumps({"spec": {"publicKeys": []}}))
    numbers = iter(range(100))

    def make() -> tuple[Visitor, Key]:
        key = Key.generate(tmp_path, f"key{next(numbers)}")
        return door.visitor(alice.owner, key), key

    return make


def test_a_certificate_for_a_person_logs_that_person_in(
    alice: Workspaces,
    fresh: Callable[[], tuple[Visitor, Key]],
    door: Door,
    authority: Path,
) -> None:
    visitor, key = fresh()
    sign(authority, key, "-I", "alice@idp", "-z", "7", "-V", "+5m", "-n", alice.owner)
    until(
        "the key of the DevUser to be gone",
        lambda: door.visitor(alice.owner, alice.key)("whoami").returncode == 255,
        30,
    )
    assert alice.namespace in visitor.says("whoami")
    opened = [one for one in door.records() if one["event"] == "session.opened"]
    assert opened[-1]["user"] == alice.owner
    assert opened[-1]["credential"].startswith('certificate "alice@idp" 7 of SHA256:')


def test_no_other_certificate_logs_anybody_in(
    alice: Workspaces,
    bob: Workspaces,
    fresh: Callable[[], tuple[Visitor, Key]],
    authority: Path,
    tmp_path: Path,
) -> None:
    foreign = Key.generate(tmp_path, "foreign").private
    name = ("-I", "alice@idp", "-V", "+5m")
    mine = ("-n", alice.owner)
    for signer, options in [
        (foreign, (*name, *mine)),
        (authority, (*name, *mine, "-h")),
        (authority, name),
        (authority, (*name, "-n", bob.owner)),
        (authority, (*name, "-n", f"{alice.owner},{bob.owner}")),
        (authority, (*name, "-n", "*")),
        (authority, (*name, "-n", alice.owner[:-1] + "?")),
        (authority, ("-I", "x", *mine, "-V", "-2d:-1d")),
        (authority, ("-I", "x", *mine, "-V", "+1d:+2d")),
        (authority, (*name, *mine, "-O", "critical:x@example.com=1")),
        (authority, (*name, *mine, "-O", "force-command=id")),
        (authority, (*name, *mine, "-O", "source-address=192.0.2.1/32")),
        (authority, ("-I", 'alice\n{"event":"x"}', "-V", "+5m", *mine)),
        (authority, ("-I", "\x1b[2J", "-V", "+5m", *mine)),
        (authority, ("-I", "a" * 300, "-V", "+5m", *mine)),
    ]:
        visitor, key = fresh()
        sign(signer, key, *options)
        refused = visitor("whoami")
        assert refused.returncode == 255, options
        assert "Permission denied (publickey)" in refused.stderr, options
    visitor, key = fresh()
    sign(authority, key, *name, *mine)
    visitor.says("whoami")


def test_a_person_who_is_suspended_is_out_whatever_the_certificate_says(
    alice: Workspaces,
    fresh: Callable[[], tuple[Visitor, Key]],
    cluster: Cluster,
    authority: Path,
) -> None:
    visitor, key = fresh()
    sign(authority, key, "-I", "alice@idp", "-V", "+1h", "-n", alice.owner)
    session = subprocess.Popen(
        visitor.line("api"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert session.stdout is not None
    assert "Welcome" in session.stdout.readline()
    patch = ("patch", "devuser", alice.owner, "--type=merge", "-p")
    cluster.kubectl(*patch, json.dumps({"spec": {"suspended": True}}))
    assert session.wait(timeout=10) != 0
    assert visitor("whoami").returncode == 255
