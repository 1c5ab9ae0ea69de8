"""Only the person with a lease can log in to an instance of the example's pool."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from machines import login, machine, metadata
from machines.machine import Machine

POOL = Path(__file__).parents[2] / "examples/pools/shared.yaml"
KEY = "gpu.platform.acme.io:authorized-key-"


@pytest.fixture(scope="module")
def warm(start: Callable[[], Machine]) -> Machine:
    """An instance without a lease."""
    booted = start()
    metadata.serve(booted)
    pool = yaml.safe_load(POOL.read_text())
    booted.boot(pool["spec"]["forProvider"]["userData"]).finish()
    assert machine.status(booted)["errors"] == []
    login.make_key(booted)
    login.serve(booted)
    return booted


def test_a_warm_instance_lets_nobody_in(warm: Machine) -> None:
    metadata.show(warm, {})
    assert login.is_refused(warm)


def test_whoever_leases_it_gets_in_without_a_reboot_until_the_key_is_taken_away(
    warm: Machine,
) -> None:
    own = login.public_key(warm)
    metadata.show(warm, {f"{KEY}1": "", f"{KEY}2": own, "Name": "shared"})
    assert login.ssh(warm, "id -un") == "developer"
    metadata.show(warm, {f"{KEY}1": "", f"{KEY}2": "", "Name": "shared"})
    assert login.is_refused(warm)


def test_the_leases_key_opens_no_other_account(warm: Machine) -> None:
    own = login.public_key(warm)
    metadata.show(warm, {f"{KEY}1": own})
    command = ["ssh", *login.OPTIONS, "root@127.0.0.1", "true"]
    assert warm.run(*command, check=False).returncode == 255
