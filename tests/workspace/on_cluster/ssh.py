"""ssh from this machine to a pod, with the test's keys and a known host key."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Login:
    """The key of a user who logs in, and the host key that ssh expects."""

    key: Path
    known_hosts: Path

    def options(self) -> list[str]:
        settings = {
            "BatchMode": "yes",
            "ConnectTimeout": "10",
            "HostKeyAlias": "workspace",
            "IdentitiesOnly": "yes",
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": str(self.known_hosts),
        }
        set_by = [f"-o{name}={value}" for name, value in settings.items()]
        # ssh must not read the configuration of the user who runs the tests.
        return ["-F", "none", "-i", str(self.key), *set_by]

    def run(
        self, address: str, command: str, check: bool = True, given: str = ""
    ) -> subprocess.CompletedProcess[str]:
        arguments = ["ssh", *self.options(), f"developer@{address}", command]
        return _run(arguments, check, given)

    def in_terminal(self, address: str, command: str) -> str:
        """Runs a command in a terminal. `-tt` asks for one although this process has
        none."""
        target = f"developer@{address}"
        return _run(["ssh", "-tt", *self.options(), target, command], True, "").stdout

    def start(self, address: str, command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["ssh", *self.options(), f"developer@{address}", command],
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def copy(self, source: Path, address: str, to: str) -> None:
        """Copies a file with scp, which uses SFTP."""
        target = f"developer@{address}:{to}"
        _run(["scp", "-q", *self.options(), str(source), target], True, "")


def make_key(path: Path) -> str:
    """Makes a key pair, and returns the public key."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"]
    subprocess.run([*command, str(path)], check=True)
    return path.with_name(f"{path.name}.pub").read_text().strip()


def known(path: Path, public_key: str) -> Path:
    """Writes a known_hosts file for the alias that `Login` uses."""
    path.write_text(f"workspace {public_key.strip()}\n")
    return path


def _run(
    arguments: list[str], check: bool, given: str
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        arguments, input=given, text=True, capture_output=True, timeout=300
    )
    if check and done.returncode:
        said = f"{done.stdout}\n{done.stderr}"
        raise AssertionError(f"{arguments[-1]!r} ended with {done.returncode}:\n{said}")
    return done
