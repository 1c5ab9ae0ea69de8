"""The function as a process, and channels to it."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
import grpc

from crossplane_side.certificates import SERVER, Identity

# The time at which the function decides all cases, because its response depends on it.
AS_OF = "2026-11-20T12:00:00Z"
# Seconds that a test waits for anything before it fails.
PATIENCE = 20


def program() -> str:
    path = os.environ.get("FUNCTION_GPU_WORKSPACE")
    assert (
        path
    ), "set FUNCTION_GPU_WORKSPACE to the built program, or `make conformance`"
    assert Path(path).is_file(), f"{path} is missing: `make conformance` builds it"
    return path


class Running:
    """A process of the function that serves requests."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address
        self.target = address.replace("[::]", "[::1]")
        # The log after the line with the address. It is complete when the process ends.
        self.log = ""

    def plain(self) -> grpc.Channel:
        return grpc.insecure_channel(self.target)

    def secure(self, client: Identity | None, authority: bytes) -> grpc.Channel:
        """A channel as Crossplane opens it. Without `client`, it has no certificate."""
        credentials = grpc.ssl_channel_credentials(
            root_certificates=authority,
            private_key=client.key if client else None,
            certificate_chain=client.certificate if client else None,
        )
        options = [("grpc.ssl_target_name_override", SERVER)]
        return grpc.secure_channel(self.target, credentials, options)


@contextmanager
def running(
    *arguments: str,
    environment: dict[str, str] | None = None,
    address: str | None = "127.0.0.1:0",
    wrapper: list[str] | None = None,
) -> Iterator[Running]:
    """Starts the function, waits until it logs that it serves, and ends it."""
    command = [*(wrapper or []), program(), *arguments]
    if address is not None:
        command += [f"--address={address}", "--metrics-address=", f"--now={AS_OF}"]
    process = subprocess.Popen(
        command,
        env={"NO_COLOR": "1"} | (environment or {}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        server = Running(process, _address(process))
        yield server
        process.terminate()
        _, server.log = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, f"it does not end cleanly:\n{server.log}"
    finally:
        process.kill()
        process.wait()


def _address(process: subprocess.Popen[str]) -> str:
    """The address in the function's log, which is JSON, or plain text with --debug."""
    assert process.stderr
    said = []
    impatience = Timer(PATIENCE, process.kill)
    impatience.start()
    for line in process.stderr:
        said.append(line)
        if found := re.search(r'\bserving("?,"address":"| address=)([^" ]+)', line):
            impatience.cancel()
            return found[2]
    raise AssertionError("the function ended:\n" + "".join(said))
