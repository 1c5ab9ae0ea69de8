"""Fixtures: a function that runs with mTLS, as Crossplane runs it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crossplane_side.calls import Answers, Function
from crossplane_side.certificates import Authority
from crossplane_side.process import Running, running


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="session")
def certificates(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The folder of the function's TLS Secret."""
    return authority.server().write(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="session")
def server(certificates: Path) -> Iterator[Running]:
    with running(
        environment={"TLS_SERVER_CERTS_DIR": str(certificates)}, address="[::]:0"
    ) as server:
        yield server


@pytest.fixture(scope="session")
def function(server: Running, authority: Authority) -> Iterator[Function]:
    identity = authority.client()
    with server.secure(identity, identity.authority) as channel:
        yield Function(channel)


@pytest.fixture(scope="session")
def answers(function: Function) -> Answers:
    return Answers(function)
