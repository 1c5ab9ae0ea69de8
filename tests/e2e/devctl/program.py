"""devctl as an owner runs it: the built program, their own rights and home folder."""

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from cluster.workspaces import Key


@dataclass
class Devctl:
    program: Path
    # The owner's home folder, with a kubeconfig that has their rights only.
    home: Path
    namespace: str
    key: Key
    environment: dict[str, str] = field(default_factory=dict)

    def __call__(
        self,
        *arguments: str,
        stdin: str | None = None,
        seconds: float = 300,
        folder: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.program, *arguments],
            cwd=folder,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            env=self.variables(),
        )

    def variables(self) -> dict[str, str]:
        return {
            **os.environ,
            "HOME": str(self.home),
            "KUBECONFIG": str(self.home / "kubeconfig"),
            "DEVCTL_NAMESPACE": self.namespace,
            "DEVCTL_IDENTITY": str(self.key.private),
            "NO_COLOR": "1",
            **self.environment,
        }

    def says(self, *arguments: str, seconds: float = 300) -> str:
        """The output of a command that succeeds."""
        ran = self(*arguments, seconds=seconds)
        print(f"$ devctl {' '.join(arguments)}\n{ran.stderr}{ran.stdout}")
        assert ran.returncode == 0, f"{arguments}: {ran.returncode} {ran.stderr}"
        return ran.stdout

    def object(self, *arguments: str) -> Any:
        return json.loads(self.says(*arguments, "-o", "json"))

    def refused(self, code: int, *arguments: str, seconds: float = 300) -> str:
        """What a command writes that ends with this exit code."""
        ran = self(*arguments, seconds=seconds)
        print(f"$ devctl {' '.join(arguments)}\n{ran.stderr}{ran.stdout}")
        assert ran.returncode == code, f"{arguments}: {ran.returncode} {ran.stderr}"
        return ran.stderr

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.variables(),
        )

    def configured(self) -> list[str]:
        """Arguments of the user's ssh, scp and others that use its configuration. ssh
        takes the home folder from the user database, and not from HOME."""
        self.says("config-ssh", "--write")
        return ["-F", str(self.home / ".ssh/config")]


def installed(
    program: Path, home: Path, namespace: str, key: Key, owner: str | None = None
) -> Devctl:
    """devctl with a home folder of its own. It has the rights of one user, or those of
    the administrator."""
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    if owner is not None:
        for user in config["users"]:
            user["user"]["as"] = owner
    (home / "kubeconfig").write_text(yaml.safe_dump(config))
    return Devctl(program, home, namespace, key)
