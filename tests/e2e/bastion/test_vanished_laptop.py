"""A laptop vanishes: its lid is shut, or its network is gone. It sends no more packets, and
no end of the connection."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bastion.door import PORT, Door, Visitor
from cluster.workspaces import Workspaces
from environment.objects import Object
from environment.waiting import until

# How long a laptop that has vanished may count as one.
LIMIT = 60
# How often the agent of a workspace of this suite reports.
REPORT = 5
# How long the platform takes to write a report into the status, on a busy machine.
WRITTEN = 30


@pytest.mark.parametrize("command", ["sleep 600", "cat /dev/zero"])
def test_a_laptop_that_vanished_is_gone_within_a_minute(
    alice: Workspaces,
    enter: Callable[..., Visitor],
    door: Door,
    tmp_path: Path,
    command: str,
) -> None:
    visitor = enter(alice)
    lifecycle = {"stopAfterIdle": "1h"}
    alice.claim("work", lifecycle=lifecycle)
    alice.ready("work", seconds=180)
    inside = visitor.inside("work", visitor.workspace_key("work", tmp_path))
    laptop = subprocess.Popen([*inside, command], stdout=subprocess.DEVNULL)
    try:
        until("the session to count as use", lambda: uses(alice) == "Active", 90)
        opened = [one for one in of(door, alice) if one["event"] == "connection.opened"]
        (session,) = {one["session"] for one in opened}
        assert connections(alice) == 1
        ((process, port),) = ports(laptop.pid, visitor.address)
        with vanished(visitor.address, port):
            began = time.monotonic()

            def is_closed() -> bool:
                ends = [one for one in of(door, alice) if one["session"] == session]
                events = {one["event"] for one in ends}
                return {"connection.closed", "session.closed"} <= events

            until("the end of the session in the log", is_closed, LIMIT)
            closed = time.monotonic() - began
            until("the workspace to be rid of it", lambda: connections(alice) == 0, 5)
            until("the use to end", lambda: uses(alice) == "Idle", REPORT + WRITTEN)
            print(f"closed after {closed:.0f} s, idle {time.monotonic() - began:.0f} s")
            # Nobody has told the laptop.
            assert laptop.poll() is None
            assert Path(f"/proc/{process}").exists()
    finally:
        laptop.kill()
        laptop.wait()


def of(door: Door, user: Workspaces) -> list[Object]:
    return [one for one in door.records() if one.get("user") == user.owner]


def uses(user: Workspaces) -> str | None:
    """Whether SSH counts as use of the workspace."""
    sources = user.status("work").get("activity", {}).get("sources", [])
    return next((one["state"] for one in sources if one["name"] == "ssh"), None)


def connections(user: Workspaces) -> int:
    """The connections to port 22 of the workspace's pod, as its kernel has them."""
    (pod,) = user.pods("work")
    process = user.cluster.processes(pod)[0]
    found = subprocess.run(
        ["nsenter", f"--net=/proc/{process}/ns/net", "--"]
        + ["ss", "-Htn", "state", "established", "sport = :22"],
        check=True,
        capture_output=True,
        text=True,
    )
    return len(found.stdout.splitlines())


def ports(process: int, address: str) -> list[tuple[int, str]]:
    """The processes below one that are connected to the bastion, and their ports."""
    family = [process]
    for one in family:
        children = Path(f"/proc/{one}/task/{one}/children")
        family += map(int, children.read_text().split())
    shown = subprocess.run(
        ["ss", "-Htnp", "dst", f"{address}:{PORT}"],
        check=True,
        capture_output=True,
        text=True,
    )
    return [
        (one, line.split()[3].rpartition(":")[2])
        for line in shown.stdout.splitlines()
        for one in family
        if f"pid={one}," in line
    ]


@contextmanager
def vanished(address: str, port: str) -> Iterator[None]:
    """Drops the packets of one connection, in both directions."""
    table = f"laptop-{os.getpid()}-{port}"
    rules = f"""
        table ip {table} {{
          chain out {{
            type filter hook output priority -300; policy accept;
            ip daddr {address} tcp sport {port} drop
          }}
          chain in {{
            type filter hook prerouting priority -300; policy accept;
            ip saddr {address} tcp dport {port} drop
          }}
        }}
    """
    subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True)
    try:
        yield
    finally:
        subprocess.run(["nft", "delete", "table", "ip", table], check=True)
