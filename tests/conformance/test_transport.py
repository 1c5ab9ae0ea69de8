"""The TLS versions and the protocol that gRPC clients require."""

import socket
import ssl
from pathlib import Path

import pytest

from crossplane_side.certificates import SERVER, Authority
from crossplane_side.process import PATIENCE, Running


def _negotiated(
    server: Running, context: ssl.SSLContext
) -> tuple[str | None, str | None]:
    host, port = server.target.rsplit(":", 1)
    address = (host.strip("[]"), int(port))
    with socket.create_connection(address, timeout=PATIENCE) as plain:
        with context.wrap_socket(plain, server_hostname=SERVER) as tls:
            # With TLS 1.3 the client learns only from the first bytes whether the
            # server accepts it: HTTP/2 settings, or a TLS alert.
            assert tls.recv(1)
            return tls.version(), tls.selected_alpn_protocol()


@pytest.fixture
def context(authority: Authority, tmp_path: Path) -> ssl.SSLContext:
    folder = authority.client().write(tmp_path / "client")
    # OpenSSL treats Crossplane's certificates as self-signed, because all have the same
    # subject, so this client does not verify them. The other tests use gRPC's own TLS,
    # which verifies them.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    context.set_alpn_protocols(["h2"])
    return context


@pytest.mark.parametrize(
    "version,named",
    [(ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")],
)
def test_http2_is_agreed_on_in(
    version: ssl.TLSVersion, named: str, server: Running, context: ssl.SSLContext
) -> None:
    context.minimum_version = context.maximum_version = version
    assert _negotiated(server, context) == (named, "h2")


def test_older_versions_of_tls_are_refused(
    server: Running, context: ssl.SSLContext
) -> None:
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1_1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError, match="(?i)version|handshake failure"):
        _negotiated(server, context)


def test_a_client_without_http2_is_refused(
    server: Running, context: ssl.SSLContext
) -> None:
    context.set_alpn_protocols(["http/1.1"])
    with pytest.raises(ssl.SSLError, match="(?i)no application protocol"):
        _negotiated(server, context)
