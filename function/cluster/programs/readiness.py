"""Whether this node can be logged in to, for the kubelet to ask by HTTP: a program of
its own for each probe would cost more than all else that an idle node does."""

from __future__ import annotations

import http.server
import socket
import socketserver
import threading
import time
from collections.abc import Callable

import answering

# The function names it in the readiness probe.
PORT = 9022
# sshd forks for each connection; while it answers it is not asked all the time.
TRUSTED = 30.0
# The kubelet gives a probe one second unless told otherwise.
PATIENCE = 0.8


class Readiness:
    """Why sshd does not answer, or None; asked again when that was long ago."""

    def __init__(
        self,
        probe: Callable[[], str | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._probe = probe
        self._clock = clock
        self._answered: float | None = None
        self._lock = threading.Lock()

    def why_not(self) -> str | None:
        with self._lock:
            now = self._clock()
            if self._answered is not None and now - self._answered < TRUSTED:
                return None
            why = self._probe()
            self._answered = None if why else now
            return why


def of_sshd() -> Readiness:
    return Readiness(lambda: answering.banner("127.0.0.1", seconds=PATIENCE))


def serve(readiness: Readiness, port: int = PORT) -> http.server.HTTPServer:
    """Answers on every address of the pod, until the process ends."""

    class Handler(http.server.BaseHTTPRequestHandler):
        # A prober that says nothing keeps nobody waiting.
        timeout = 5

        def do_GET(self) -> None:
            why = readiness.why_not()
            body = f"sshd on 127.0.0.1:22: {why}\n" if why else "sshd answers\n"
            self.send_response(503 if why else 200)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Every few seconds the same: not for the container's log."""

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def server_bind(self) -> None:
            if self.address_family == socket.AF_INET6:
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            # Without HTTPServer's own, which asks the DNS for a name that nobody reads.
            socketserver.TCPServer.server_bind(self)

    if socket.has_dualstack_ipv6():
        Server.address_family = socket.AF_INET6
    server = Server(("", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
