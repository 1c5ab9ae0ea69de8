#!/usr/bin/env python3
"""What JupyterLab does for its callers, by Python's own library: it describes itself in
the runtime folder, and answers with its page and with its kernels. The test writes the
state of the kernel into the file `kernel`."""

import http.server
import json
import os
import secrets
import sys
from pathlib import Path

TOKEN = secrets.token_hex(24)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        has_token = (
            f"token={TOKEN}" in self.path
            or self.headers.get("Authorization") == f"token {TOKEN}"
        )
        self.send_response(200 if has_token else 403)
        self.end_headers()
        if has_token:
            self.wfile.write(answer(self.path).encode())


def answer(path: str) -> str:
    if path.startswith("/api/kernels"):
        state = (Path.home() / "kernel").read_text().strip()
        return json.dumps([{"execution_state": state}])
    return "JupyterLab\n"


def main() -> None:
    assert sys.argv[1:] == ["lab", "--no-browser", "--ServerApp.ip=127.0.0.1"]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    default = Path.home() / ".local/share/jupyter/runtime"
    runtime = Path(os.environ.get("JUPYTER_RUNTIME_DIR", default))
    runtime.mkdir(parents=True, exist_ok=True)
    description = {
        "base_url": "/",
        "hostname": "127.0.0.1",
        "pid": os.getpid(),
        "port": server.server_port,
        "secure": False,
        "sock": "",
        "token": TOKEN,
    }
    file = runtime / f"jpserver-{os.getpid()}.json"
    file.write_text(json.dumps(description, indent=2))
    server.serve_forever()


main()
