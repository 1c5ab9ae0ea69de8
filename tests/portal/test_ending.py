"""No request fails because Kubernetes ends a replica of the portal, as in each update of its Deployment."""

import socket
import ssl
from pathlib import Path

from processes import until
from stage import Places, Start

ARRIVING = 20
# The answer to a person who has not signed in. The app's pages are not in every build of the portal.
UNAUTHORIZED = b"HTTP/1.1 401 Unauthorized"


def answer(plain: socket.socket, tls: ssl.SSLContext) -> bytes:
    """The first line of the answer to a request over this connection, which has no TLS yet."""
    with tls.wrap_socket(plain, server_hostname="localhost") as connection:
        connection.sendall(b"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with connection.makefile("rb") as lines:
            return lines.readline().strip()


def test_a_portal_that_is_told_to_end_answers_those_who_have_connected(
    dex: str,
    start: Start,
    authentication: Path,
    places: Places,
    tls: ssl.SSLContext,
) -> None:
    address = ("127.0.0.1", places.persons_port)
    log = places.folder / "ending.log"
    with start(authentication, places.persons_port, "ending") as process:
        arriving = [socket.create_connection(address) for _ in range(ARRIVING)]
        # The portal accepts connections in their order, so it has accepted those before.
        assert answer(socket.create_connection(address), tls) == UNAUTHORIZED
        process.terminate()
        until("the signal", lambda: "told to end" in log.read_text())
        answers = {answer(plain, tls) for plain in arriving}
        assert answers == {UNAUTHORIZED}
        assert answer(socket.create_connection(address), tls) == UNAUTHORIZED
