"""The endpoint of AWS's services in a machine's network. The emulator answers."""

import socket
import threading
from typing import Any

from werkzeug.serving import make_server


class Endpoint:
    """Answers on a socket that listens."""

    def __init__(self, listening: socket.socket, app: Any) -> None:
        host, port = listening.getsockname()
        # The server copies the socket, so the original is closed.
        self._server = make_server(
            host, port, app, threaded=True, fd=listening.fileno()
        )
        listening.close()
        serve = self._server.serve_forever
        threading.Thread(target=serve, args=(0.1,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
