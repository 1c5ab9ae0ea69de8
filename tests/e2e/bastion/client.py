"""The bastion by an SSH library that is not OpenSSH: many sessions of one connection, and
what OpenSSH's client would not send."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, cast

import asyncssh

from bastion.door import PORT, Visitor

# How long an answer may take on a busy machine.
PATIENCE = 60


@asynccontextmanager
async def connected(
    visitor: Visitor, **options: Any
) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """A login of a person. The machine's own configuration of ssh has no effect."""
    given: dict[str, Any] = {
        "username": visitor.name,
        "client_keys": [str(visitor.key.private)],
        "known_hosts": str(visitor.known_hosts),
        "config": None,
        "agent_path": None,
        **options,
    }
    async with asyncssh.connect(visitor.address, PORT, **given) as connection:
        yield connection


@dataclass(frozen=True)
class Ran:
    """What a session ended with. There is no exit code if a signal ended it."""

    code: int | None
    stdout: bytes
    stderr: bytes

    @property
    def said(self) -> bytes:
        return self.stdout + self.stderr


async def run(
    connection: asyncssh.SSHClientConnection,
    command: bytes | None,
    stdin: bytes = b"",
    **options: Any,
) -> Ran:
    """Runs a command line, or a prompt if there is none."""
    # asyncssh sends bytes as they are, though its type does not say so.
    line = cast(str | None, command)
    process = await connection.create_process(line, encoding=None, **options)
    async with process:
        if not stdin:
            process.stdin.write_eof()
        out, err = await asyncio.wait_for(process.communicate(stdin), PATIENCE)
        code = process.exit_status
    return Ran(code, cast(bytes, out or b""), cast(bytes, err or b""))


class Calls:
    """The command `api`: one operation of the API server a line, as devctl on a laptop
    sends them."""

    def __init__(self, process: asyncssh.SSHClientProcess[bytes]) -> None:
        self._process = process
        self.welcome: Any = None

    @classmethod
    async def open(cls, connection: asyncssh.SSHClientConnection) -> "Calls":
        calls = cls(await connection.create_process("api", encoding=None))
        calls.welcome = await calls._answer()
        return calls

    async def __aenter__(self) -> "Calls":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.close()
        await self._process.wait_closed()

    async def ask(self, call: Any) -> Any:
        """The broker's answer. A person who asks too fast waits, as the answer says."""
        while True:
            self._process.stdin.write(json.dumps(call).encode() + b"\n")
            answer = await self._answer()
            if answer["Api"].get("Err", {}).get("status") != 429:
                return answer["Api"]
            await asyncio.sleep(1)

    async def _answer(self) -> Any:
        line = await asyncio.wait_for(self._process.stdout.readline(), PATIENCE)
        assert line, await self._process.stderr.read()
        return json.loads(line)
