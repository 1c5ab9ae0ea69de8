"""These tests need Python and OpenSSH's client on the machine."""

import shutil

import pytest


def pytest_sessionstart() -> None:
    for program in ["ssh-keygen"]:
        if not shutil.which(program):
            pytest.exit(
                f"{program} is missing: apt-get install -y openssh-client", returncode=1
            )
