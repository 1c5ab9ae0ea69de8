"""An SSH server that allows everything, so that the attempts of `channels` can succeed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncssh


class _Session(asyncssh.SSHServerSession[str]):
    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        return True


class _Everything(asyncssh.SSHServer):
    def begin_auth(self, username: str) -> bool:
        return False

    def session_requested(self) -> _Session:
        return _Session()

    def connection_requested(self, *_: Any) -> Any:
        return _silent

    def unix_connection_requested(self, *_: Any) -> Any:
        return _silent

    def server_requested(self, *_: Any) -> bool:
        return True

    def unix_server_requested(self, *_: Any) -> bool:
        return True

    def tun_requested(self, *_: Any) -> Any:
        return _silent

    def tap_requested(self, *_: Any) -> Any:
        return _silent


def _silent(*_: Any) -> None:
    """Accepts a connection."""


@asynccontextmanager
async def permissive(folder: Path) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """A connection to the server."""
    server = await asyncssh.create_server(
        _Everything,
        "127.0.0.1",
        0,
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        agent_forwarding=True,
        x11_forwarding=True,
        x11_auth_path=str(folder / "xauth"),
    )
    port = server.get_port()
    options: dict[str, Any] = {"known_hosts": None, "config": None, "username": "x"}
    async with server, asyncssh.connect("127.0.0.1", port, **options) as connection:
        yield connection
