"""Clients that connect and say nothing cost the portal little, and nobody else anything."""

import socket
import ssl
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from people import Browser
from stage import Places

SILENT = 300
MANY = 10_000
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


def resident(process: int) -> int:
    """The memory of a process, in bytes."""
    status = Path(f"/proc/{process}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def test_silent_clients_are_let_go_and_keep_nobody_out(
    alice: Browser, tls: ssl.SSLContext
) -> None:
    port = urlsplit(alice.portal).port
    assert port is not None
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(SILENT)]
    # These have TLS, and the half of a request.
    slow = []
    for _ in range(20):
        plain = socket.create_connection(("127.0.0.1", port))
        connection = tls.wrap_socket(plain, server_hostname="localhost")
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


@pytest.mark.thorough
def test_ten_thousand_silent_clients_keep_nobody_out(
    alice: Browser, bob: Browser, places: Places, process: subprocess.Popen[str]
) -> None:
    port = urlsplit(alice.portal).port
    assert port is not None
    before = resident(process.pid)
    silent: list[socket.socket] = []
    slowest = 0.0
    try:
        for number in range(MANY):
            silent.append(socket.create_connection(("127.0.0.1", port)))
            if number % 1000 == 999:
                # A browser that comes now, with a connection of its own.
                with Browser(alice.portal, places.certificates.authority).http as http:
                    http.cookies.update(alice.http.cookies)
                    http.trust_env = False
                    http.verify = str(places.certificates.authority)
                    began = time.monotonic()
                    answer = http.get(f"{alice.portal}/api/v1/me")
                    slowest = max(slowest, time.monotonic() - began)
                    assert answer.status_code == 200
        assert bob.get("/api/v1/me").status_code == 200
        grown = resident(process.pid) - before
        print(f"slowest {slowest:.2f} s, memory + {grown / 2**20:.0f} MiB")
        assert slowest < 2
        assert grown < 64 * 2**20
    finally:
        for one in silent:
            one.close()
