"""A fake API server with one Secret."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from api_server import Secrets

PATH = "/api/v1/namespaces/team/secrets/vision-host-keys"
TOKEN = "the-token"


@dataclass
class Api:
    data: dict[str, str] | None = None
    version: int = 1
    # The first answers, one for each call: a status (200 is no fault), or 0, which
    # closes the connection.
    faults: list[int] = field(default_factory=list)
    # Called before the server handles a patch.
    meanwhile: Callable[["Api"], None] = lambda api: None
    patches: int = 0
    calls: int = 0
    port: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def secrets(self) -> Secrets:
        return Secrets(lambda: HTTPConnection("127.0.0.1", self.port), "team", TOKEN)

    def object(self) -> dict[str, Any]:
        found: dict[str, Any] = {"metadata": {"resourceVersion": str(self.version)}}
        return found | ({"data": self.data} if self.data is not None else {})

    def patch(self, change: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.meanwhile(self)
        if change["metadata"]["resourceVersion"] != str(self.version):
            return 409, {"message": "the object has been modified"}
        self.data = {**(self.data or {}), **change["data"]}
        self.version += 1
        self.patches += 1
        return 200, self.object()


@contextmanager
def serving(api: Api, certificate: Path | None = None) -> Iterator[Api]:
    """Runs the API server. With a certificate it uses TLS. The certificate's file must
    also have the key."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(lambda: (200, api.object()))

        def do_PATCH(self) -> None:
            length = int(self.headers["Content-Length"])
            change = json.loads(self.rfile.read(length))
            kind = self.headers["Content-Type"]
            assert kind == "application/merge-patch+json"
            self._answer(lambda: api.patch(change))

        def _answer(self, do: Callable[[], tuple[int, dict[str, Any]]]) -> None:
            with api.lock:
                api.calls += 1
                fault = api.faults.pop(0) if api.faults else 200
                if fault == 0:
                    return
                if self.headers["Authorization"] != f"Bearer {TOKEN}":
                    fault = 401
                if self.path != PATH:
                    fault = 404
                answer = (fault, {"message": "no"}) if fault != 200 else do()
            body = json.dumps(answer[1]).encode()
            self.send_response(answer[0])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                # A client that does not trust the certificate closes the connection.
                return

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        api.port = server.server_port
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield api
        server.shutdown()
        thread.join()
