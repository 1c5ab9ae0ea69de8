"""A person works in a workspace from a terminal at the bastion, without devctl and keys of their own there."""

import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from bastion.door import Door, Visitor
from cluster.workspaces import Workspaces

Enter = Callable[..., Visitor]


class Terminal:
    """What a person sees and types."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self.seen = ""

    def types(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")

    def shows(self, text: str, seconds: float = 60) -> str:
        """What is shown up to and with this text, since the last one."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            left = deadline - time.monotonic()
            readable, _, _ = select.select([self.process.stdout], [], [], max(left, 0))
            read = os.read(self.process.stdout.fileno(), 65536) if readable else b""
            assert read, f"waited for {text!r}, and saw {self.seen!r}"
            self.seen += read.decode()
        shown, _, self.seen = self.seen.partition(text)
        return shown + text


@pytest.fixture
def terminal(alice: Workspaces, enter: Enter) -> Iterator[Terminal]:
    terminal = Terminal(enter(alice).line(flags=("-tt",)))
    yield terminal
    terminal.process.kill()
    terminal.process.wait()


def test_the_first_documents_workflow_works_word_by_word(terminal: Terminal) -> None:
    terminal.shows("devctl> ")
    terminal.types("devctl create mydev cpu-small")
    terminal.shows("devctl ssh mydev, or ssh mydev.ws", 120)
    terminal.shows("devctl> ")
    terminal.types("devctl ssh mydev")
    terminal.shows("$ ")
    terminal.types("echo $((6*7)) $(id -un) $(tty)")
    assert "42 developer /dev/pts/" in terminal.shows("42 developer /dev/pts/")
    terminal.types("exit")
    terminal.shows("devctl> ")
    terminal.types("devctl delete mydev --yes")
    assert "deleted" in terminal.shows("devctl> ", 120)
    terminal.types("exit")
    assert terminal.process.wait(30) == 0


def test_a_person_runs_jobs_and_watches_them_there(
    alice: Workspaces, enter: Enter, door: Door
) -> None:
    visitor = enter(alice)
    visitor.says("create", "work", "cpu-small")
    assert visitor.says("ssh", "work", "--", "id", "-un") == "developer\n"
    assert visitor("ssh", "work", "--", "exit", "7").returncode == 7
    assert "trained" in visitor.says("run", "work", "echo", "trained")
    assert "trained" in visitor.says("logs", "work")
    assert "echo" in visitor.says("jobs", "work")
    sample = json.loads(visitor.says("monitor", "work", "--once", "-o", "json"))
    assert sample

    records = [one for one in door.records() if one.get("user") == alice.owner]
    issued = [one for one in records if one["event"] == "certificate.issued"]
    opened = [one for one in records if one["event"] == "connection.opened"]
    assert len(issued) >= 5
    # One ssh has one connection and one certificate.
    assert len(issued) == len(opened)
    # The session that started ssh is named in the certificate, which the workspace's sshd logs.
    sessions = {one["session"] for one in records if one["event"] == "command"}
    assert {one["session"] for one in issued} <= sessions
    assert all(one["session"] in one["id"] for one in issued)


def test_nobody_enters_somebody_elses_workspace_from_the_bastion(
    alice: Workspaces, bob: Workspaces, enter: Enter
) -> None:
    theirs, mine = enter(alice), enter(bob)
    theirs.says("create", "secret", "cpu-small")
    mine.says("create", "own", "cpu-small")
    assert mine.says("ssh", "own", "--", "echo", "in") == "in\n"
    for words in (
        ("ssh", "secret", "--", "echo", "in"),
        ("ssh", f"secret.{alice.namespace}", "--", "echo", "in"),
        ("run", "secret", "echo", "in"),
        ("logs", "secret"),
        ("ssh", "own", "-oProxyCommand=id"),
        ("ssh", "-oProxyCommand=id", "own"),
        ("ssh", "127.0.0.1"),
    ):
        refused = mine(*words)
        assert refused.returncode != 0, words
        assert "in\n" not in refused.stdout
        assert "uid=" not in refused.stdout + refused.stderr


def test_what_needs_files_of_ones_own_machine_says_where_to_run_it(
    alice: Workspaces, enter: Enter
) -> None:
    visitor = enter(alice)
    for words in (
        ("cp", "x", "work:x"),
        ("run", "work", "--sync", ".", "id"),
        ("code", "work"),
        ("port-forward", "work", "8888"),
    ):
        refused = visitor(*words)
        assert refused.returncode == 4, refused.stderr
        assert "run it there: devctl" in refused.stderr
