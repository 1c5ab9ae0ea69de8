"""What these tests need of the machine: Python and OpenSSH's client."""

import shutil

import pytest


def pytest_sessionstart() -> None:
    for program in ["ssh-keygen"]:
        if not shutil.which(program):
            pytest.exit(
                f"{program} is missing: apt-get install -y openssh-client", returncode=1
            )
