"""A corpus of what hostile people send: nothing of it runs, and every line is recorded."""

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh
import yaml

from bastion.client import PATIENCE, Ran, connected, run
from bastion.corpus import doors, generate
from bastion.door import Door, Visitor
from cluster.workspaces import Workspaces

FOLDER = Path(__file__).parent / "corpus"
# What only a program, a shell or a file of the bastion would say.
CANARIES = re.compile(
    rb"uid=\d|root:x:0|\b1337\b|SSH_CONNECTION=|PATH=/|ld\.so|cannot be preloaded"
    rb"|command not found|syntax error|OpenSSH_\d|panicked"
)
# A person gives ten commands a second. More is refused, which would be another record.
PACE = 0.11
# A command whose answer is the same for everybody at any time.
SAME = b"flavors -o json"
# How a connection ends that OpenSSH closes because of what a client sent.
CLOSED = (asyncssh.ConnectionLost, asyncssh.DisconnectError, ConnectionError)
Line = dict[str, Any]
Record = tuple[str, Any]


def classes() -> Iterator[list[tuple[str, str, Line]]]:
    """The lines of each class, each with the name of the class and its door."""
    for path in sorted(FOLDER.glob("*.yaml")):
        of_class = yaml.safe_load(path.read_text())
        yield [(path.stem, of_class["door"], one) for one in of_class["lines"]]


def text_of(line: Line) -> bytes:
    """What is sent: a text, perhaps with another one many times behind it."""
    parts = (line["line"], line.get("then", ""), line.get("end", ""))
    head, then, end = (one.encode() if isinstance(one, str) else one for one in parts)
    return bytes(head + then * line.get("times", 0) + end)


def record_of(line: Line) -> Record:
    """What the audit log has of a command line."""
    if "refused" in line:
        return "command.refused", line["refused"]
    words = list(line["words"])
    match line.get("grows"):
        case "last":
            words[-1] += line["then"] * line["times"]
        case "list":
            words += [line["word"]] * line["times"]
    return "command", words


@dataclass
class Hostile:
    """A person who sends lines, one after the other, and remembers what must be recorded."""

    visitor: Visitor
    namespace: str
    records: list[Record] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    last: float = 0

    async def send(self, lines: list[tuple[str, str, Line]]) -> None:
        """Sends lines on one connection, and on another one after each that ends it."""
        while lines:
            async with connected(self.visitor) as connection:
                plain = await run(connection, SAME)
                self.records.append(("command", SAME.decode().split()))
                while lines and await self._goes_on(connection, plain, *lines.pop()):
                    pass

    async def _goes_on(
        self,
        connection: asyncssh.SSHClientConnection,
        plain: Ran,
        name: str,
        door: str,
        line: Line,
    ) -> bool:
        """Sends a line. Returns whether the connection is of use for another one."""
        before = len(self.wrong)
        closes = line.get("closes", False)
        try:
            with suppress(*CLOSED, asyncssh.ChannelOpenError):
                await getattr(self, f"_{door}")(connection, line, plain)
            if closes:
                await asyncio.wait_for(connection.wait_closed(), PATIENCE)
            elif connection.is_closed():
                self.wrong.append("the connection is closed")
        except TimeoutError:
            self.wrong.append("it does not end")
        news = self.wrong[before:]
        self.wrong[before:] = [f"{name}: {str(line)[:300]}: {why}" for why in news]
        return not news and not closes

    async def _command(
        self, connection: asyncssh.SSHClientConnection, line: Line, _: Ran
    ) -> None:
        await self._paced(1)
        if not line.get("unreached"):
            self.records.append(record_of(line))
        ran = await run(connection, text_of(line))
        self._check(ran, line.get("code"))

    async def _environment(
        self, connection: asyncssh.SSHClientConnection, line: Line, plain: Ran
    ) -> None:
        await self._paced(1)
        self.records.append(("command", SAME.decode().split()))
        env = {line["name"]: line["value"]}
        ran = await run(connection, SAME, env=env)
        if ran != plain:
            self.wrong.append(f"it is {ran}, and without the variable {plain}")

    async def _subsystem(
        self, connection: asyncssh.SSHClientConnection, line: Line, _: Ran
    ) -> None:
        try:
            await connection.create_session(
                asyncssh.SSHClientSession, subsystem=line["name"]
            )
        except asyncssh.ChannelOpenError:
            return
        self.wrong.append("there is such a subsystem")

    async def _login(
        self, _: asyncssh.SSHClientConnection, line: Line, __: Ran
    ) -> None:
        name = line["name"].replace("USER", self.visitor.name)

        class Named(asyncssh.SSHClient):
            def connection_made(self, conn: Any) -> None:
                # asyncssh takes no name with characters that control a terminal.
                conn._username = name

        try:
            async with connected(self.visitor, client_factory=Named) as other:
                await self._paced(1)
                ran = await run(other, b"whoami -o json")
        except (asyncssh.PermissionDenied, *CLOSED):
            if line["opens"]:
                self.wrong.append("it is refused")
            return
        self.records.append(("command", ["whoami", "-o", "json"]))
        if not line["opens"] or self.namespace.encode() not in ran.stdout:
            self.wrong.append(f"the login opens: {ran}")

    async def _api(
        self, connection: asyncssh.SSHClientConnection, line: Line, _: Ran
    ) -> None:
        await self._paced(1)
        self.records.append(("command", ["api"]))
        text = text_of(line).replace(b"NAMESPACE", self.namespace.encode())
        ran = await run(connection, b"api", text)
        self._check(ran, line["code"])
        answers = [yaml.safe_load(one) for one in ran.stdout.splitlines()]
        if not answers or answers[0]["Welcome"]["namespace"] != self.namespace:
            self.wrong.append(f"the person is another one: {answers[:1]}")
        seen = [outcome(one) for one in answers[1:]]
        if seen != line["answers"]:
            self.wrong.append(f"the answers are {seen}: {ran.said[-500:]!r}")

    async def _prompt(
        self, connection: asyncssh.SSHClientConnection, line: Line, _: Ran
    ) -> None:
        await self._paced(len(line["records"]))
        self.records += map(record_of, line["records"])
        self._check(await run(connection, None, text_of(line)), line["code"])

    async def _terminal(
        self, connection: asyncssh.SSHClientConnection, line: Line, _: Ran
    ) -> None:
        await self._paced(len(line["records"]))
        self.records += map(record_of, line["records"])
        options: dict[str, Any] = {"encoding": None, "term_type": "xterm"}
        process = await connection.create_process(**options)
        async with process:
            # Before that, the session is not the one whom keys reach.
            shown = process.stdout.readuntil(b"devctl> ")
            before = await asyncio.wait_for(shown, PATIENCE)
            process.stdin.write(text_of(line))
            await asyncio.wait_for(process.wait_closed(), PATIENCE)
            said = before + await process.stdout.read() + await process.stderr.read()
            self._check(Ran(process.exit_status, said, b""), line["code"])

    def _check(self, ran: Ran, code: int | None) -> None:
        if found := CANARIES.search(ran.said):
            self.wrong.append(f"it says {found.group()!r}")
        if code is None and ran.code == 0 or code not in (None, ran.code):
            self.wrong.append(f"the code is {ran.code}: {ran.said[-300:]!r}")

    async def _paced(self, commands: int) -> None:
        wait = self.last + PACE - time.monotonic()
        await asyncio.sleep(max(wait, 0))
        self.last = time.monotonic() + PACE * (commands - 1)


def outcome(answer: Any) -> str:
    """What became of a call: the bastion's own refusal names what it asks about."""
    match answer:
        case {"Api": {"Ok": _}}:
            return "ok"
        case {"Api": {"Err": {"status": 403, "message": message}}} if (
            "the bastion asks" in message
        ):
            return "forbidden"
        case {"Api": {"Err": _}} | {"Refused": _}:
            return "refused"
    return str(answer)


def test_the_corpus_is_what_its_script_writes() -> None:
    found = {path.name: path.read_text() for path in FOLDER.glob("*.yaml")}
    assert found == generate.files()


def test_nothing_that_a_client_sends_runs_and_every_line_is_recorded(
    alice: Workspaces, bob: Workspaces, enter: Callable[..., Visitor], door: Door
) -> None:
    broker = door.broker()
    people = [Hostile(enter(one), one.namespace) for one in (alice, bob)]
    lines = [one for of_class in classes() for one in of_class]
    assert len({name for name, _, _ in lines}) >= 20 and len(lines) >= 300
    before = {one.visitor.name: len(recorded(door, one)) for one in people}

    async def together() -> None:
        halves = [lines[0::2], lines[1::2]]
        await asyncio.gather(
            *(one.send(half[::-1]) for one, half in zip(people, halves, strict=True))
        )

    asyncio.run(together())
    wrong = [why for one in people for why in one.wrong]
    assert not wrong, f"{len(wrong)} of {len(lines)} lines:\n" + "\n".join(wrong)
    for one in people:
        seen = recorded(door, one)[before[one.visitor.name] :]
        assert seen == one.records
    assert door.broker() == broker
    assert "the chain is whole" in door.verify()


def recorded(door: Door, person: Hostile) -> list[Record]:
    """The command lines of a person in the audit log."""
    mine = [one for one in door.records() if one.get("user") == person.visitor.name]
    return [
        (one["event"], one.get("words", one.get("reason")))
        for one in mine
        if one["event"] in ("command", "command.refused")
    ]


def test_no_variable_of_a_client_reaches_the_process_of_a_session(
    alice: Workspaces, enter: Callable[..., Visitor], door: Door
) -> None:
    # sshd sets these itself (sshd(8), "LOGIN PROCESS").
    own = {"USER", "LOGNAME", "HOME", "PATH", "SHELL", "TERM", "SSH_TTY", "TZ"}
    own |= {"MAIL", "SSH_CLIENT", "SSH_CONNECTION", "SSH_ORIGINAL_COMMAND"}
    hostile = set(doors.VARIABLES.values())

    async def look() -> list[dict[str, str]]:
        async with connected(enter(alice)) as connection:
            options: dict[str, Any] = {"encoding": None, "env": doors.VARIABLES}
            process = await connection.create_process("api", **options)
            assert await asyncio.wait_for(process.stdout.readline(), 60)
            found = list(variables_of_sessions(door))
            process.close()
            return found

    sessions = asyncio.run(look())
    mine = [one for one in sessions if one["USER"] == alice.owner]
    assert [one["SSH_ORIGINAL_COMMAND"] for one in mine] == ["api"]
    for variables in sessions:
        assert set(variables) <= own
        assert not hostile & set(variables.values())


def variables_of_sessions(door: Door) -> Iterator[dict[str, str]]:
    """The environment of each session's process, as the kernel has it."""
    id_ = str(door.container("sshd")["containerID"]).removeprefix("containerd://")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if id_ not in (process / "cgroup").read_text():
                continue
            if b"session --grant" not in (process / "cmdline").read_bytes():
                continue
            text = (process / "environ").read_bytes().decode(errors="replace")
        except OSError:
            # It ended meanwhile.
            continue
        pairs = (one.partition("=") for one in text.split("\0") if one)
        yield {name: value for name, _, value in pairs}
