"""Clients that connect and say nothing cost the portal little, and nobody else anything."""

import socket
import ssl
import time
from urllib.parse import urlsplit

from people import Browser
from stage import Places

SILENT = 300
# The portal waits 10 s for TLS, and for the headers of a request.
LONGEST = 15


def closed(connection: socket.socket) -> bool:
    """Whether the other end has closed the connection."""
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True


def test_silent_clients_are_let_go_and_keep_nobody_out(
    alice: Browser, places: Places
) -> None:
    port = urlsplit(alice.portal).port
    assert port is not None
    context = ssl.create_default_context(cafile=str(places.certificates.authority))
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(SILENT)]
    # These have TLS, and the half of a request.
    slow = []
    for _ in range(20):
        plain = socket.create_connection(("127.0.0.1", port))
        connection = context.wrap_socket(plain, server_hostname="localhost")
        connection.sendall(b"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nX-A: ")
        slow.append(connection)
    began = time.monotonic()
    assert alice.get("/api/v1/me").status_code == 200
    assert time.monotonic() - began < 2
    while not all(closed(one) for one in [*silent, *slow]):
        assert time.monotonic() - began < LONGEST
        time.sleep(0.2)
    assert alice.get("/api/v1/me").status_code == 200
    for one in [*silent, *slow]:
        one.close()
