"""Whether an sshd answers at an address."""

from __future__ import annotations

import socket

# Makes sshd's log say no more than that the connection was closed.
OWN_BANNER = b"SSH-2.0-gpu-workspace-probe\r\n"


def banner(host: str, port: int = 22, seconds: float = 3.0) -> str | None:
    """Why it does not answer, or None."""
    try:
        with socket.create_connection((host, port), seconds) as connection:
            connection.settimeout(seconds)
            said = connection.recv(64)
            connection.sendall(OWN_BANNER)
    except socket.gaierror as error:
        return f"its name does not resolve ({error.strerror})"
    except TimeoutError:
        return f"port {port} does not answer"
    except OSError as error:
        return f"port {port}: {(error.strerror or str(error)).lower()}"
    if not said.startswith(b"SSH-"):
        return f"port {port} answers, but not as sshd does"
    return None
