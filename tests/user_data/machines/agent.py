"""A machine whose workspace has an agent, and the servers that the agent calls."""

import hashlib
import json
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import parse_qs

from machines import documents, goldens, metadata, workspaces
from machines.machine import Machine
from machines.waiting import until

ROOT = Path(__file__).parents[3]
SCRIPT = "/usr/local/lib/gpu-workspace/agent"
PROGRAM = "/usr/local/bin/gpu-workspace-agent"
UNIT = "gpu-workspace-agent.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
SETTINGS = "/etc/gpu-workspace/agent.env"
SETUP_LOG = "/var/log/gpu-workspace-setup.log"
HOOK_LOG = "/var/log/gpu-workspace-hooks.log"
PORT = 8080
URL = f"http://127.0.0.1:{PORT}/gpu-workspace-agent"
TAGS = "/run/tagged"
# A fake of IMDS for an instance with a role, and of EC2, on one address.
CLOUD = f"""\
import http.server

SAYS = {{
    "instance-id": "i-0123456789abcdef0",
    "placement/region": "eu-central-1",
    "iam/security-credentials/": "workspace",
    "iam/security-credentials/workspace":
        '{{"AccessKeyId": "ASIA", "SecretAccessKey": "secret", "Token": "token"}}',
}}


class Cloud(http.server.BaseHTTPRequestHandler):
    def do_PUT(self):
        self.answer("token")

    def do_GET(self):
        is_known = self.headers["X-aws-ec2-metadata-token"] == "token"
        path = self.path.removeprefix("/latest/meta-data/")
        self.answer(SAYS.get(path) if is_known else None)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with open("{TAGS}", "a") as file:
            file.write(body + "\\n")
        self.answer("<CreateTagsResponse/>")

    def answer(self, text):
        body = (text or "").encode()
        self.send_response(404 if text is None else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


http.server.HTTPServer(("{metadata.ADDRESS}", 80), Cloud).serve_forever()
"""


@cache
def program() -> bytes:
    """The real agent, from a development build."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "agent"
        command = ["cargo", "xtask", "agent", str(path)]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return path.read_bytes()


def install(machine: Machine, served: bytes | None, wanted: bytes) -> None:
    """Writes the agent's files of the user data. The local server offers the program
    `served`; the digest in the settings is that of `wanted`."""
    config = documents.parsed(goldens.document(workspaces.AGENT))
    for place in (SCRIPT, UNIT_FILE, SETTINGS):
        file = documents.file(config, place)
        machine.write(place, file["content"], file["permissions"])
    golden = machine.says("cat", SETTINGS).splitlines()
    values = {"AGENT_URL": URL, "AGENT_SHA256": hashlib.sha256(wanted).hexdigest()}
    lines = [
        f"{name}='{values[name]}'" if (name := line.split("=")[0]) in values else line
        for line in golden
    ]
    machine.write(SETTINGS, "\n".join([*lines, "AGENT_RETRY_SECONDS=0.2", ""]))
    machine.run("mkdir", "-p", "/srv/served")
    if served is not None:
        serve(machine, served)
    machine.start(
        *["python3", "-m", "http.server", "--bind", "127.0.0.1"],
        *["--directory", "/srv/served", str(PORT)],
    )
    _answers(machine, "127.0.0.1", PORT)


def serve(machine: Machine, content: bytes) -> None:
    machine.write("/srv/served/new", content)
    machine.run("mv", "/srv/served/new", "/srv/served/gpu-workspace-agent")


def cloud(machine: Machine) -> None:
    machine.run("ip", "addr", "add", f"{metadata.ADDRESS}/32", "dev", "lo")
    machine.write("/opt/cloud.py", CLOUD)
    machine.start("python3", "/opt/cloud.py")
    _answers(machine, metadata.ADDRESS, 80)


def _answers(machine: Machine, address: str, port: int) -> None:
    up = f"until : 2>/dev/null </dev/tcp/{address}/{port}; do sleep 0.1; done"
    machine.run("timeout", "20", "bash", "-c", up)


def command(machine: Machine, setting: str) -> list[str]:
    """The command in a setting of the unit, with the variables of its environment file."""
    unit = machine.says("cat", UNIT_FILE).splitlines()
    (line,) = [line for line in unit if line.startswith(f"{setting}=")]
    assert f"EnvironmentFile={SETTINGS}" in unit
    # In a unit, `+` runs a command without the unit's sandbox. Here is no sandbox.
    program = line.removeprefix(f"{setting}=").removeprefix("+")
    run = f"set -a; . {SETTINGS}; exec {program}"
    return ["sh", "-c", run]


def start(machine: Machine, setting: str, **more: str) -> subprocess.Popen[str]:
    variables = [f"{name}={value}" for name, value in more.items()]
    return machine.start("env", *variables, *command(machine, setting))


def stop(machine: Machine) -> None:
    """Runs the unit's ExecStop, with a systemctl that reports a shutdown."""
    systemctl = "#!/bin/sh\necho stopping\nexit 1\n"
    machine.write("/usr/local/sbin/systemctl", systemctl, "0755")
    machine.run(*command(machine, "ExecStop"))


def setup_log(machine: Machine) -> str:
    return machine.says("sh", "-c", f"cat {SETUP_LOG} 2>/dev/null || true")


def tags(machine: Machine) -> dict[str, str]:
    """The tags in the first CreateTags call, once the agent has made one."""

    def bodies() -> list[str]:
        said = machine.says("sh", "-c", f"cat {TAGS} 2>/dev/null || true")
        return said.splitlines()

    until("a report", lambda: bool(bodies()))
    asked = {key: values[0] for key, values in parse_qs(bodies()[0]).items()}
    assert asked["Action"] == "CreateTags", json.dumps(asked)
    numbers = [key.split(".")[1] for key in asked if key.endswith(".Key")]
    return {asked[f"Tag.{n}.Key"]: asked[f"Tag.{n}.Value"] for n in numbers}
