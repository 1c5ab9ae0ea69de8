"""EC2's metadata service in a machine, from which an instance reads its tags."""

import json

from machines.machine import Machine

ADDRESS = "169.254.169.254"
SERVER = """\
import http.server, json
from urllib.parse import unquote

TAGS = "/latest/meta-data/tags/instance"


class Service(http.server.BaseHTTPRequestHandler):
    def do_PUT(self):
        asked = self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
        self.answer("token" if asked and self.path == "/latest/api/token" else None)

    def do_GET(self):
        try:
            with open("/run/tags.json") as file:
                tags = json.load(file)
        except FileNotFoundError:
            return self.answer(None)
        # Version 2 alone, as launch templates ask for it.
        if self.headers["X-aws-ec2-metadata-token"] != "token":
            self.answer(None)
        elif self.path.rstrip("/") == TAGS:
            self.answer("\\n".join(tags))
        else:
            self.answer(tags.get(unquote(self.path).removeprefix(TAGS + "/")))

    def answer(self, text):
        self.send_response(404 if text is None else 200)
        self.end_headers()
        self.wfile.write((text or "").encode())


http.server.HTTPServer(("169.254.169.254", 80), Service).serve_forever()
"""


def serve(machine: Machine) -> None:
    """Starts the service. Until there are tags, instance tags are off."""
    machine.run("ip", "addr", "add", f"{ADDRESS}/32", "dev", "lo")
    show(machine, {})
    machine.write("/opt/metadata.py", SERVER)
    machine.start("python3", "/opt/metadata.py")
    up = f"until : 2>/dev/null </dev/tcp/{ADDRESS}/80; do sleep 0.1; done"
    machine.run("timeout", "20", "bash", "-c", up)


def show(machine: Machine, tags: dict[str, str]) -> None:
    """Sets the instance's tags."""
    machine.write("/run/tags.json", json.dumps(tags))


def hide(machine: Machine) -> None:
    """Makes the service answer 404 to every question."""
    machine.run("rm", "/run/tags.json")
