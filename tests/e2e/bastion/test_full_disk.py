"""The audit volume of a replica is full: nothing new happens, and what is open goes on."""

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from bastion.client import PATIENCE, connected, run
from bastion.disk import LAST, Disk, small_disk
from bastion.door import Door, Visitor, requests
from cluster.workspaces import Workspaces
from environment.cluster import CLAIMS, Cluster, is_ready
from environment.waiting import until

# What people read in the place of an answer.
WHY = "cannot write its audit log"


@pytest.fixture(scope="module")
def disk(door: Door) -> Iterator[Disk]:
    with small_disk(door) as disk:
        yield disk


def probe(visitor: Visitor, path: str) -> int:
    answered = urllib3.request("GET", f"http://{visitor.address}:8080{path}")
    return answered.status


def asked_by(user: Workspaces) -> list[Any]:
    """What the API server was asked for by the bastion as a person."""
    account = f"system:serviceaccount:{user.namespace}:gpu-workspaces.owner"
    return [
        one
        for one in requests()
        if one.get("impersonatedUser", {}).get("username") == account
    ]


class Echo:
    """A person at work in a workspace, through the bastion."""

    def __init__(self, inside: list[str]) -> None:
        self.ssh = subprocess.Popen(
            [*inside, "cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def answers(self, word: str) -> bool:
        assert self.ssh.stdin is not None and self.ssh.stdout is not None
        self.ssh.stdin.write(f"{word}\n")
        return self.ssh.stdout.readline() == f"{word}\n"

    def end(self) -> int:
        assert self.ssh.stdin is not None
        self.ssh.stdin.close()
        return self.ssh.wait(30)


@pytest.mark.alone
def test_with_a_full_disk_nothing_new_happens_and_connections_go_on(
    alice: Workspaces,
    enter: Callable[..., Visitor],
    door: Door,
    disk: Disk,
    cluster: Cluster,
    tmp_path: Path,
) -> None:
    visitor = enter(alice, LAST)
    visitor.says("create", "work", "cpu-small")
    echo = Echo(visitor.inside("work", visitor.workspace_key("work", tmp_path)))
    assert echo.answers("before")
    with disk.full():
        # The last page of the log still has room for a record or two.
        until("the disk to be full", lambda: visitor("list").returncode != 0)
        assert probe(visitor, "/readyz") == 503
        assert probe(visitor, "/healthz") == 200
        before = len(asked_by(alice))
        for words in (
            ("list",),
            ("create", "other", "cpu-small", "--no-wait"),
            ("connect", "work"),
            ("api",),
            (),
        ):
            ran = visitor(*words)
            assert ran.returncode != 0 and ran.stdout == "", words
            assert WHY in ran.stderr, (words, ran.stderr)
        assert echo.answers("full")
        assert cluster.get(CLAIMS, "other", alice.namespace) is None
        assert len(asked_by(alice)) == before
        # A record of the bastion itself may fit where that of a login does not.
        until(
            "the pod not to be ready",
            lambda: visitor("list").returncode != 0 and door.ready(LAST) is None,
        )

    # Nobody logs in while the replica is not ready: it notices by itself.
    until("the bastion to be ready", lambda: probe(visitor, "/readyz") == 200, 30)
    until("the pod to be ready", lambda: is_ready(door.pod(LAST)))
    assert "work" in visitor.says("list", "-o", "name")
    assert echo.answers("after")
    assert echo.end() == 0
    all_closed(door, alice)


@pytest.mark.alone
def test_a_session_gives_no_command_and_ends_in_the_log_although_the_disk_was_full(
    alice: Workspaces, enter: Callable[..., Visitor], door: Door, disk: Disk
) -> None:
    visitor = enter(alice, LAST)

    async def command_at_an_open_prompt() -> tuple[str, str]:
        async with connected(visitor) as connection:
            process = await connection.create_process()
            await asyncio.wait_for(process.stdout.readuntil("devctl> "), PATIENCE)
            with disk.full():
                # Logins take the room that is left in the last page of the log.
                while (await run(connection, b"list")).code == 0:
                    pass
                process.stdin.write("list\n")
                out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
            return str(out), str(err)

    out, err = asyncio.run(command_at_an_open_prompt())
    assert WHY in err and "no workspaces" not in out + err, (out, err)
    until("the bastion", lambda: visitor("list").returncode == 0)
    all_closed(door, alice)


def all_closed(door: Door, user: Workspaces) -> None:
    """Waits until each session of a person has its end in the log."""

    def look() -> bool:
        mine = [one for one in door.records(LAST) if one.get("user") == user.owner]
        opened = {one["session"] for one in mine if one["event"] == "session.opened"}
        closed = {one["session"] for one in mine if one["event"] == "session.closed"}
        return opened == closed

    until("each session to have an end in the log", look, 60)
    assert "the chain is whole" in door.verify(LAST)
