"""Access that ends: a removed key, and certificates of the platform's authority."""

from collections.abc import Callable

import pytest

from machines import certificates, documents, goldens, login, machine, metadata
from machines.machine import Machine

CASE = "v3-keys-of-the-dev-user"
TAG = "gpu.platform.acme.io:authorized-key-"
OWNER = "alice"


@pytest.fixture(scope="module")
def served(start: Callable[[], Machine]) -> Machine:
    """A workspace of version v3 without keys, with sshd and EC2's metadata service. It
    trusts the authority of `certificates`."""
    booted = start()
    metadata.serve(booted)
    authority = certificates.make_authority(booted, "ca")
    change = documents.with_authority(authority)
    document = documents.changed(
        goldens.document(CASE), change, documents.without_setup
    )
    booted.boot(document).finish()
    assert machine.status(booted)["errors"] == []
    login.make_key(booted)
    login.serve(booted)
    return booted


def test_a_removed_key_opens_nothing_at_the_next_login(served: Machine) -> None:
    own = login.public_key(served)
    other = (
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOtherOtherOtherOtherOtherOtherOtherOther"
    )
    metadata.show(served, {f"{TAG}1": other, f"{TAG}2": own, "Name": "ws"})
    assert login.ssh(served, "id -un") == "developer"
    metadata.show(served, {f"{TAG}1": other, f"{TAG}2": "", "Name": "ws"})
    assert login.is_refused(served)


def test_a_key_that_needs_several_tags_opens_the_machine(served: Machine) -> None:
    path = "/root/.ssh/long"
    served.run(*["ssh-keygen", "-q", "-t", "rsa", "-b", "3072", "-N", "", "-f", path])
    long = login.public_key(served, path)
    parts = [long[at : at + 256] for at in range(0, len(long), 256)]
    assert len(parts) == 3
    tags = {f"{TAG}2-{number}": part for number, part in enumerate(parts, 1)}
    tags[f"{TAG}2"] = tags.pop(f"{TAG}2-1")
    # Ten keys: the tag with number 10 comes before the one with number 2 by its name.
    tags |= {f"{TAG}{number}": "" for number in [1, *range(3, 11)]}
    metadata.show(served, tags)
    assert login.ssh(served, "id -un", key=path) == "developer"
    metadata.show(served, tags | {f"{TAG}2-3": ""})
    assert login.is_refused(served, key=path)


def test_a_key_in_the_owners_own_folder_opens_nothing(served: Machine) -> None:
    """A key that the platform did not put there could not be taken away."""
    metadata.show(served, {})
    folder = "/home/developer/.ssh"
    served.run("install", "-d", "-o", "developer", "-m", "700", folder)
    served.write(f"{folder}/authorized_keys", login.public_key(served) + "\n")
    served.run("chown", "developer:", f"{folder}/authorized_keys")
    assert login.is_refused(served)


def test_without_the_metadata_service_nobody_gets_in_by_key(served: Machine) -> None:
    metadata.hide(served)
    try:
        assert login.is_refused(served)
    finally:
        metadata.show(served, {f"{TAG}1": login.public_key(served)})
    assert login.ssh(served, "id -un") == "developer"


def test_the_keys_open_no_other_account(served: Machine) -> None:
    metadata.show(served, {f"{TAG}1": login.public_key(served)})
    command = ["ssh", *login.OPTIONS, "root@127.0.0.1", "true"]
    assert served.run(*command, check=False).returncode == 255


@pytest.mark.parametrize(
    ("authority", "principal", "validity", "opens"),
    [
        ("ca", OWNER, "-1m:+1h", True),
        ("ca", "bob", "-1m:+1h", False),
        ("ca", "developer", "-1m:+1h", False),
        ("ca", OWNER, "-2h:-1h", False),
        ("other", OWNER, "-1m:+1h", False),
    ],
    ids=[
        "valid",
        "of another person",
        "of the user",
        "expired",
        "of another authority",
    ],
)
def test_certificates_open_the_machine_of_their_principal_only(
    served: Machine, authority: str, principal: str, validity: str, opens: bool
) -> None:
    metadata.show(served, {})
    certificates.make_authority(served, authority)
    key = certificates.sign(served, authority, principal, validity)
    if opens:
        assert login.ssh(served, "id -un", key=key) == "developer"
    else:
        assert login.is_refused(served, key=key)
