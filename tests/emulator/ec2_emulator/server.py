"""The HTTP server: cheroot, with a function that cuts a client's connection."""

import contextlib
import socket
from typing import Any

from cheroot import wsgi

from .app import CUT, App

# Each long poll and each injected delay occupies a thread.
THREADS = 32


class CuttableGateway(wsgi.Gateway_10):
    # The stubs of cheroot declare None, but the result is a dict.
    def get_environ(self) -> dict[str, Any]:  # type: ignore[override]
        environ: dict[str, Any] = super().get_environ()  # type: ignore[no-untyped-call]
        environ[CUT] = self._cut
        return environ

    def _cut(self) -> None:
        self.req.close_connection = True
        with contextlib.suppress(OSError):
            self.req.conn.socket.shutdown(socket.SHUT_RDWR)


def make_server(app: App, host: str, port: int) -> wsgi.Server:
    """A server that already listens. Port 0 takes a free port (see `bind_addr`)."""
    server = wsgi.Server(
        (host, port), app, numthreads=THREADS, request_queue_size=128, timeout=60
    )
    server.gateway = CuttableGateway
    server.prepare()
    return server
