"""Configuration: the flags, their defaults and their environment."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from crossplane_side import cases
from crossplane_side.calls import Function
from crossplane_side.certificates import Authority
from crossplane_side.process import PATIENCE, Running, program, running

PORT = 9443


def answers(channel: grpc.Channel) -> bool:
    with channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=PATIENCE)
            response = Function(channel).run(cases.request(cases.PLAIN))
        except (grpc.FutureTimeoutError, grpc.RpcError):
            return False
        return "pool" in response.desired.resources


@pytest.mark.parametrize("secure", [True, False], ids=["mTLS", "insecure"])
def test_it_listens_on_port_9443_by_default(secure: bool, certificates: Path) -> None:
    flags = [f"--tls-certs-dir={certificates}"] if secure else ["--insecure"]
    # The function gets its own network namespace, because the port may be in use here.
    own_network = ["unshare", "--map-root-user", "--net"]
    with running(*flags, address=None, wrapper=own_network) as server:
        assert PORT in _listening(server.process.pid)


def _listening(process: int) -> set[int]:
    """The TCP ports that listen in a process's network namespace."""
    ports = set()
    for table in ["tcp", "tcp6"]:
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_ = line.split()
            if state == "0A":
                ports.add(int(local.rsplit(":", 1)[1], 16))
    return ports


def test_without_certificates_it_serves_only_when_told_so() -> None:
    refused = subprocess.run(
        [program()], env={}, capture_output=True, text=True, timeout=PATIENCE
    )
    assert refused.returncode == 1
    assert "--tls-certs-dir" in refused.stderr and "--insecure" in refused.stderr


def test_it_serves_insecurely_when_both_are_given(certificates: Path) -> None:
    for flags, environment in [
        (["--insecure", f"--tls-certs-dir={certificates}"], {}),
        (["--insecure"], {"TLS_SERVER_CERTS_DIR": str(certificates)}),
    ]:
        with running(*flags, environment=environment) as server:
            assert answers(server.plain())


@pytest.mark.parametrize("by", ["flag", "environment"])
def test_certificates_are_named_by(
    by: str, certificates: Path, authority: Authority
) -> None:
    flags = [f"--tls-certs-dir={certificates}"] if by == "flag" else []
    environment = {} if by == "flag" else {"TLS_SERVER_CERTS_DIR": str(certificates)}
    client = authority.client()
    with running(*flags, environment=environment) as server:
        assert answers(server.secure(client, client.authority))


@pytest.mark.parametrize("flag", [[], ["--debug"], ["-d"]], ids=str)
def test_debug_logs_are_off_unless_asked_for(flag: list[str]) -> None:
    with running("--insecure", *flag) as server:
        assert answers(server.plain())
    assert ("DEBUG" in server.log) == bool(flag)


def test_only_crossplane_is_served(server: Running, authority: Authority) -> None:
    """mTLS is on: client and server verify each other's certificate."""
    ours, theirs = authority.client(), Authority().client()
    clients: dict[str, tuple[bool, Callable[[], grpc.Channel]]] = {
        "crossplane": (True, lambda: server.secure(ours, ours.authority)),
        "foreign": (False, lambda: server.secure(theirs, ours.authority)),
        "anonymous": (False, lambda: server.secure(None, ours.authority)),
        "plaintext": (False, server.plain),
    }
    for name, (served, channel) in clients.items():
        if served:
            assert answers(channel()), name
        else:
            with channel() as refused, pytest.raises(grpc.RpcError) as error:
                stub = refused.unary_unary("/grpc.health.v1.Health/Check")
                stub(b"", timeout=PATIENCE)
            assert error.value.code() == grpc.StatusCode.UNAVAILABLE, name
