"""Workspaces in the cluster: an owner's commits and logins."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environment.cluster import CLAIMS, Cluster
from environment.objects import Object
from environment.platform import Platform, claim

# The network from which this machine connects, as pods see it.
HOST_NETWORK = "10.243.0.0/16"
HOME = {"sizeGiB": 1}


@dataclass(frozen=True)
class Key:
    """An SSH key pair of this test run."""

    private: Path

    @classmethod
    def generate(cls, folder: Path, name: str) -> "Key":
        private = folder / name
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", private],
            check=True,
        )
        return cls(private)

    @property
    def public(self) -> str:
        return self.private.with_suffix(".pub").read_text().strip()


class Workspaces(Platform):
    """One owner's workspaces, in their namespace."""

    def __init__(self, cluster: Cluster, namespace: str, owner: str, key: Key) -> None:
        super().__init__(cluster, namespace)
        self.owner = owner
        self.key = key

    def claim(self, name: str, **parameters: Any) -> None:
        """Applies a claim whose workspace lets this machine in."""
        composition = parameters.pop("composition", None)
        document = claim(
            self.namespace,
            name,
            {
                "owner": self.owner,
                "placement": "Cluster",
                "ssh": {"allowedCidrs": [HOST_NETWORK]},
                **parameters,
            },
        )
        if composition:
            document["spec"]["compositionRef"] = {"name": composition}
        self.cluster.apply(document)

    def change(self, name: str, **parameters: Any) -> None:
        """Changes parameters of a claim, as a commit would do."""
        self.cluster.kubectl(
            "patch",
            CLAIMS,
            name,
            "-n",
            self.namespace,
            "--type=merge",
            "-p",
            json.dumps({"spec": {"parameters": parameters}}),
        )

    def pods(self, name: str) -> list[Object]:
        label = f"platform.acme.io/cluster-workspace=gpuws-{name}"
        return self.cluster.all("pods", self.namespace, label)

    def homes(self, name: str) -> list[Object]:
        label = f"platform.acme.io/cluster-workspace=gpuws-{name}"
        return self.cluster.all("persistentvolumeclaims", self.namespace, label)

    def ssh(
        self,
        name: str,
        *command: str,
        node: int = 0,
        key: Key | None = None,
        host_key: str | None = None,
        stdin: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command in a node. Its host key must be the one of the status."""
        status = self.status(name)
        at = status["nodes"][node]
        (known,) = [host_key] if host_key else status["hostKeys"]
        known_hosts = self.key.private.parent / f"known-hosts-{name}-{node}"
        known_hosts.write_text(f"{at['host']} {known}\n")
        return subprocess.run(
            [
                "ssh",
                "-i",
                (key or self.key).private,
                "-o",
                f"UserKnownHostsFile={known_hosts}",
                "-o",
                f"HostKeyAlias={at['host']}",
                *("-o", "StrictHostKeyChecking=yes", "-o", "IdentitiesOnly=yes"),
                *("-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-F", "none"),
                f"developer@{at['ip']}",
                *command,
            ],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )

    def run(
        self, name: str, *command: str, node: int = 0, stdin: str | None = None
    ) -> str:
        ran = self.ssh(name, *command, node=node, stdin=stdin)
        assert ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}"
        return ran.stdout.strip()

    def forget(self) -> None:
        """Deletes the claims, and then the homes, which outlive claims."""
        self.cluster.delete_claims(self.namespace)
        self.cluster.kubectl(
            "delete", "pvc", "--all", "-n", self.namespace, "--timeout=60s"
        )
