"""A workspace on an instance that boots. Tests log in to it as its owner does."""

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster.workspaces import Key
from environment.objects import Object
from environment.waiting import until
from lifecycle.life import Life


@dataclass
class Machine(Life):
    key: Key = field(default=Key(Path()))
    # The network from which this host connects to instances.
    here: str = ""

    def manifest(self, lifecycle: dict[str, str], **parameters: Any) -> Object:
        ssh = {"publicKeys": [self.key.public], "allowedCidrs": [self.here]}
        return super().manifest(lifecycle, **{"ssh": ssh, **parameters})

    def options(self) -> list[str]:
        """Arguments of `ssh` for a login to the status's host, with its host keys."""
        status = self.status()
        known = self.key.private.parent / "known_hosts"
        keys = status.get("hostKeys", [])
        known.write_text("".join(f"{status['publicIp']} {key}\n" for key in keys))
        return [
            *("-F", "none", "-i", str(self.key.private), "-o", "IdentitiesOnly=yes"),
            *("-o", f"UserKnownHostsFile={known}", "-o", "StrictHostKeyChecking=yes"),
            *("-o", "BatchMode=yes", "-o", "ConnectTimeout=3"),
            f"developer@{status['publicIp']}",
        ]

    def ssh(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["ssh", *self.options(), command],
            capture_output=True,
            text=True,
            check=False,
        )

    def run(self, command: str) -> str:
        ran = self.ssh(command)
        assert ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}"
        return ran.stdout.strip()

    def logged_in(self, seconds: float = 120) -> Object:
        """The status, once the workspace is Ready and its owner can log in."""
        self.platform.ready(self.name, seconds)

        def look() -> bool:
            status = self.status()
            has_address = "publicIp" in status and bool(status.get("hostKeys"))
            return has_address and self.ssh("true").returncode == 0

        until(f"{self.name} to let its owner in", look, seconds)
        return self.status()

    def await_home(self, kept: list[str] | None = None) -> None:
        """Waits for the mounted home, and for the host keys that it `kept`. The owner can
        log in before, while the software is being installed. Before the home is mounted,
        the agent reports the host keys that the new instance made, and sshd shows those.
        """
        if kept is not None:
            until(
                "the home's host keys",
                lambda: self.status().get("hostKeys") == kept,
                120,
            )
        until(
            "the home to be mounted",
            lambda: self.ssh("mountpoint -q /home/developer").returncode == 0,
            seconds=120,
        )
