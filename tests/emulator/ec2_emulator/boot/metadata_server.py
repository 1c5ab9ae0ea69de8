"""The protocol of the metadata service: tokens, versions and access."""

import logging
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from . import metadata

LONGEST_TOKEN_SECONDS = 21600
TTL = "X-aws-ec2-metadata-token-ttl-seconds"
TOKEN = "X-aws-ec2-metadata-token"

log = logging.getLogger("ec2_emulator")


class MetadataServer:
    """Answers on a listening socket. `look` returns the options and the metadata."""

    def __init__(
        self, listening: socket.socket, look: Callable[[], tuple[Any, metadata.Tree]]
    ) -> None:
        self._look = look
        self._tokens: dict[str, float] = {}
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                service.get(self)

            def do_PUT(self) -> None:
                service.put(self)

            def log_message(self, format: str, *arguments: Any) -> None:
                """The emulator logs calls of AWS's services."""

        self._server = ThreadingHTTPServer(
            listening.getsockname(), Handler, bind_and_activate=False
        )
        self._server.daemon_threads = True
        self._server.socket.close()
        self._server.socket = listening
        serve = self._server.serve_forever
        threading.Thread(target=serve, args=(0.1,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def put(self, request: BaseHTTPRequestHandler) -> None:
        """Answers with a token, for processes on the machine itself."""
        options, _ = self._look()
        lasts = request.headers.get(TTL, "")
        if request.path != "/latest/api/token":
            _answer(request, 404)
        elif options.http_endpoint == "disabled" or "X-Forwarded-For" in (
            request.headers
        ):
            _answer(request, 403)
        elif not lasts.isdecimal() or not 1 <= int(lasts) <= LONGEST_TOKEN_SECONDS:
            _answer(request, 400)
        else:
            token = secrets.token_urlsafe(40)
            self._tokens[token] = time.monotonic() + int(lasts)
            _answer(request, 200, token.encode(), {TTL: lasts})

    def get(self, request: BaseHTTPRequestHandler) -> None:
        options, tree = self._look()
        token = request.headers.get(TOKEN)
        valid = self._tokens.get(token or "", 0) > time.monotonic()
        if options.http_endpoint == "disabled":
            _answer(request, 403)
        elif not valid and (token or options.http_tokens == "required"):
            _answer(request, 401)
        else:
            self._show(request, tree)

    def _show(self, request: BaseHTTPRequestHandler, tree: metadata.Tree) -> None:
        version, _, rest = unquote(request.path).lstrip("/").partition("/")
        if not version:
            _answer(request, 200, "\n".join(metadata.VERSIONS).encode())
            return
        try:
            found = metadata.find(tree, rest) if version in metadata.VERSIONS else None
        except Exception:
            log.exception("GET %s failed inside the metadata service", request.path)
            _answer(request, 500)
            return
        _answer(request, 404 if found is None else 200, found or b"")


def _answer(
    request: BaseHTTPRequestHandler,
    status: int,
    content: bytes = b"",
    headers: dict[str, str] | None = None,
) -> None:
    # The client may have ended with its machine.
    with suppress(OSError):
        request.send_response(status)
        for name, value in (headers or {}).items():
            request.send_header(name, value)
        request.send_header("Content-Type", "text/plain")
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)
