"""Every channel and request of SSH that leads past a session (RFC 4254, and OpenSSH's
PROTOCOL): tried on a connection, one by one."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import asyncssh
from asyncssh.channel import SSHClientChannel
from asyncssh.packet import Boolean, String, UInt32

Connection = asyncssh.SSHClientConnection

# What OpenSSH's server has, has had, or has by its configuration.
SUBSYSTEMS = ("sftp", "internal-sftp", "netconf", "publickey", "scp", "shell", "sh")
AGENT = b"auth-agent-req@openssh.com"
X11 = b"x11-req"
COOKIE = b"".join(
    [Boolean(False), String("MIT-MAGIC-COOKIE-1"), String("00" * 16), UInt32(0)]
)


@dataclass(frozen=True)
class Places:
    """Where a channel would lead."""

    tcp: list[tuple[str, int]]
    sockets: list[str]
    folder: str


async def opened(connection: Connection, places: Places) -> dict[str, bool]:
    """Which attempts succeed."""
    attempts: dict[str, Callable[[], Awaitable[Any]]] = {}
    for name in SUBSYSTEMS:
        attempts[f"subsystem {name}"] = partial(_subsystem, connection, name)
    for host, port in places.tcp:
        to = partial(connection.open_connection, host, port)
        attempts[f"direct-tcpip {host}:{port}"] = to
    for path in places.sockets:
        to = partial(connection.open_unix_connection, path)
        attempts[f"direct-streamlocal {path}"] = to
    attempts |= {
        "tcpip-forward": lambda: connection.start_server(_nobody, "", 0),
        "tcpip-forward, one address": lambda: connection.start_server(
            _nobody, "127.0.0.1", 0
        ),
        "streamlocal-forward": lambda: connection.start_unix_server(
            _nobody, f"{places.folder}/forwarded"
        ),
        "auth-agent-req": lambda: _request(connection, AGENT),
        "x11-req": lambda: _request(connection, X11, COOKIE),
        "tun": lambda: connection.open_tun(),
        "tap": lambda: connection.open_tap(),
        # Only a server opens these.
        "forwarded-tcpip": lambda: _channel(
            connection, b"forwarded-tcpip", *_endpoints("127.0.0.1")
        ),
        "forwarded-streamlocal": lambda: _channel(
            connection,
            b"forwarded-streamlocal@openssh.com",
            String(f"{places.folder}/forwarded"),
            String(""),
        ),
        "x11": lambda: _channel(connection, b"x11", String("127.0.0.1"), UInt32(6000)),
        "auth-agent": lambda: _channel(connection, b"auth-agent@openssh.com"),
    }
    return {name: await _succeeds(attempt) for name, attempt in attempts.items()}


async def _succeeds(attempt: Callable[[], Awaitable[Any]]) -> bool:
    try:
        return await asyncio.wait_for(attempt(), 20) is not False
    except (asyncssh.ChannelOpenError, asyncssh.ChannelListenError):
        return False


async def _subsystem(connection: Connection, name: str) -> None:
    channel, _ = await connection.create_session(
        asyncssh.SSHClientSession, subsystem=name
    )
    channel.close()


class _Asking(asyncssh.SSHClientSession[str]):
    """A session that asks for something before its command, with an answer. asyncssh
    itself ignores the answer of some requests."""

    def __init__(self, request: bytes, arguments: bytes) -> None:
        self.request, self.arguments = request, arguments
        self.answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def connection_made(self, chan: Any) -> None:
        chan._request_waiters.append(self.answer)
        chan._send_request(self.request, self.arguments, want_reply=True)


async def _request(
    connection: Connection, request: bytes, arguments: bytes = b""
) -> bool:
    session = _Asking(request, arguments)
    channel, _ = await connection.create_session(lambda: session, "whoami")
    answer = await session.answer
    channel.close()
    return answer


async def _channel(connection: Connection, kind: bytes, *arguments: bytes) -> None:
    """Opens a channel of a type that clients do not open."""
    loop = asyncio.get_running_loop()
    channel: Any = SSHClientChannel(
        connection, loop, "strict", None, "strict", 1 << 21, 1 << 15
    )
    await channel._open(kind, *arguments)
    channel.close()


def _endpoints(host: str) -> list[bytes]:
    """Where a forwarded connection arrived, and from where it came."""
    return [String(host), UInt32(22), String(host), UInt32(22)]


def _nobody(*_: Any) -> Any:
    raise AssertionError("a connection came in by the bastion")
