"""Fake nodes, which are folders on this machine, and a fake ssh to them.

`ssh NODE python3 …/node_agent.py` starts the real agent, with the node's folder in its
environment. The `torchrun` on its PATH is a script of the test. If a node's folder has
a file `lost`, ssh cannot reach the node.
"""

import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

import launch
import places

SCRIPTS = Path(launch.__file__).parent
SSH = f"""\
#!{sys.executable}
import os, sys

host, command = sys.argv[-2:]
node = os.path.join({{nodes!r}}, host.split(".")[0])
assert command == {launch.AGENT!r}, command
if os.path.exists(os.path.join(node, "lost")):
    print("ssh: connect to host", host, "port 22: No route to host", file=sys.stderr)
    sys.exit(255)
environment = dict(os.environ, NODE=node)
# As sshd would set it, on each node another one.
environment["PET_NODE_RANK"] = "wrong"
with open(os.path.join(node, "connections"), "a") as file:
    file.write(str(os.getpid()) + "\\n")
agent = [sys.executable, {str(SCRIPTS / "node_agent.py")!r}]
os.execve(agent[0], agent, environment)
"""


@dataclass(frozen=True)
class Nodes:
    folder: Path
    count: int

    def __getitem__(self, index: int) -> Path:
        return self.folder / f"vision-{index}"

    def hosts(self) -> str:
        names = [f"vision-{index}" for index in range(self.count)]
        return " ".join(f"{n}.vision.team.svc.cluster.local" for n in names)


def nodes(folder: Path, count: int, torchrun: str) -> tuple[Nodes, str]:
    """The nodes, and a folder with ssh and torchrun for PATH."""
    programs = folder / "bin"
    programs.mkdir()
    made = Nodes(folder / "nodes", count)
    for index in range(count):
        made[index].mkdir(parents=True)
    _program(programs / "ssh", SSH.format(nodes=str(made.folder)))
    _program(programs / "torchrun", f"#!{sys.executable}\n{torchrun}")
    return made, str(programs)


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def alive(process: int) -> bool:
    """Whether a process runs and is no zombie."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] not in "ZX"


def environment(nodes: Nodes, programs: str) -> dict[str, str]:
    return {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "WORKSPACE_HOSTS": nodes.hosts(),
        "PET_MASTER_PORT": "29500",
        "HOME": str(places.HOME),
    }
