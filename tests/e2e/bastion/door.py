"""The bastion as people and the platform team see it: ssh, and the audit log."""

import base64
import json
import os
import subprocess
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from bastion.account import AGENT
from cluster.workspaces import Key, Workspaces
from environment.cluster import Cluster
from environment.objects import Object
from environment.waiting import until

NAMESPACE = "gpu-bastion"
PORT = 2222
# A pod of the bastion in whose sessions another program runs.
HOSTILE = "gpu-bastion-hostile"
AUDIT = "/var/lib/gpu-bastion/audit/audit.jsonl"


@dataclass(frozen=True)
class Visitor:
    """A person with a name and a key, and no credential of the cluster."""

    name: str
    key: Key
    address: str
    known_hosts: Path

    def options(self) -> list[str]:
        settings = {
            "Port": PORT,
            "IdentityFile": self.key.private,
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": self.known_hosts,
            "StrictHostKeyChecking": "yes",
            "BatchMode": "yes",
        }
        options = [("-o", f"{name}={value}") for name, value in settings.items()]
        return ["-F", "none", *(word for pair in options for word in pair)]

    def line(self, *words: str, flags: tuple[str, ...] = ()) -> list[str]:
        """A command line of ssh to the bastion."""
        where = f"{self.name}@{self.address}"
        return ["ssh", *self.options(), *flags, "--", where, *words]

    def __call__(
        self, *words: str, flags: tuple[str, ...] = (), stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        ran = subprocess.run(
            self.line(*words, flags=flags),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env={"PATH": os.environ["PATH"]},
        )
        print(f"$ ssh {self.name}@bastion {' '.join(words)}\n{ran.stderr}{ran.stdout}")
        return ran

    def says(self, *words: str) -> str:
        ran = self(*words)
        assert ran.returncode == 0, f"{words}: {ran.returncode} {ran.stderr}"
        return ran.stdout

    def workspace_key(self, workspace: str, folder: Path) -> Path:
        """The workspace's host key, as the claim tells it through the bastion."""
        claim = json.loads(self.says("show", workspace, "-o", "json"))
        (key,) = claim["status"]["hostKeys"]
        known = folder / "workspaces"
        known.write_text(f"{workspace}.ws {key}\n")
        return known

    def inside(self, workspace: str, known_hosts: Path) -> list[str]:
        """A command line of ssh to a workspace, through the bastion."""
        proxy = " ".join(f"'{word}'" for word in self.line("connect", workspace))
        settings = {
            "ProxyCommand": proxy,
            "User": "developer",
            "IdentityFile": self.key.private,
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": known_hosts,
            "StrictHostKeyChecking": "yes",
            "BatchMode": "yes",
        }
        options = [("-o", f"{name}={value}") for name, value in settings.items()]
        words = [word for pair in options for word in pair]
        return ["ssh", "-F", "none", *words, f"{workspace}.ws"]


class Door:
    """The bastion's pods."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder

    def pod(self, replica: int = 0) -> Object:
        found = self.cluster.get("pod", f"gpu-bastion-{replica}", NAMESPACE)
        assert found is not None, f"replica {replica} has no pod"
        return found

    def ready(self, replica: int = 0) -> str | None:
        """The UID of a replica's pod, if all its containers are ready."""
        found = self.cluster.get("pod", f"gpu-bastion-{replica}", NAMESPACE) or {}
        statuses = found.get("status", {}).get("containerStatuses", [])
        is_ready = len(statuses) == 2 and all(one["ready"] for one in statuses)
        return str(found["metadata"]["uid"]) if is_ready else None

    def address(self, replica: int = 0) -> str:
        return str(self.pod(replica)["status"]["podIP"])

    def known_hosts(self) -> Path:
        """The host key, as the platform team publishes it."""
        secret = self.cluster.get("secret", "gpu-bastion-host-key", NAMESPACE)
        assert secret is not None
        private = self.folder / "host_key"
        if not private.exists():
            script = ["base64", "-d"]
            encoded = secret["data"]["ssh_host_ed25519_key"]
            decoded = subprocess.run(
                script, input=encoded.encode(), capture_output=True
            )
            private.touch(mode=0o600)
            private.write_bytes(decoded.stdout)
        shown = subprocess.run(
            ["ssh-keygen", "-y", "-f", private], capture_output=True, text=True
        )
        public = " ".join(shown.stdout.split()[:2])
        known = self.folder / "known_hosts"
        addresses = [self.address(replica) for replica in range(2)]
        known.write_text("".join(f"[{one}]:{PORT} {public}\n" for one in addresses))
        return known

    def authority(self) -> str:
        """The public key of the authority by which the bastion logs in to workspaces."""
        name = "gpu-bastion-user-authority"
        secret = self.cluster.get("secret", name, NAMESPACE)
        assert secret is not None
        public = base64.b64decode(secret["data"]["user_authority.pub"]).decode()
        return " ".join(public.split()[:2])

    def visitor(self, name: str, key: Key, replica: int = 0) -> Visitor:
        return Visitor(name, key, self.address(replica), self.known_hosts())

    def enter(self, user: Workspaces, replica: int = 0) -> Visitor:
        """A person's way to the bastion, once the bastion knows them."""
        visitor = self.visitor(user.owner, user.key, replica)
        until(
            f"the bastion to know {user.owner}",
            lambda: visitor("whoami").returncode == 0,
            30,
        )
        return visitor

    def process(self, container: str, replica: int = 0) -> int:
        """The process of a container on this machine."""
        return self.cluster.process_of(self.container(container, replica))

    def processes(self, replica: int = 0) -> list[int]:
        """All processes of a replica's containers on this machine."""
        statuses = self.pod(replica)["status"]["containerStatuses"]
        ids = [one["containerID"].removeprefix("containerd://") for one in statuses]
        return [found for id_ in ids for found in self.cluster.processes_in(id_)]

    def container(self, name: str, replica: int = 0) -> Object:
        """The status of a container."""
        statuses = self.pod(replica)["status"]["containerStatuses"]
        (status,) = [one for one in statuses if one["name"] == name]
        return status

    def broker(self, replica: int = 0) -> int:
        return self.process("broker", replica)

    def trusts(self, authority: str) -> bool:
        """Whether sshd of both replicas has this public key of an authority. The kubelet
        takes up to a minute until a pod has a changed ConfigMap."""
        sshds = [self.process("sshd", replica) for replica in range(2)]
        name = "etc/gpu-bastion-authorities/keys"
        files = [Path(f"/proc/{sshd}/root/{name}").read_text() for sshd in sshds]
        return all(authority in file for file in files)

    def log(self, replica: int = 0) -> str:
        """The audit log on the volume of a replica, as the broker sees it."""
        return Path(f"/proc/{self.broker(replica)}/root{AUDIT}").read_text()

    def verify(self, replica: int = 0) -> str:
        """What the bastion says of the chain of its audit log."""
        return self.cluster.kubectl(
            *("exec", f"gpu-bastion-{replica}", "-n", NAMESPACE, "-c", "broker", "--"),
            *("/usr/bin/gpu-bastion", "verify", AUDIT),
        )

    def records(self, replica: int = 0) -> list[Any]:
        # Words may have other characters that Python takes for ends of lines.
        return [json.loads(line) for line in self.log(replica).split("\n") if line]


def requests() -> list[Any]:
    """What the API server recorded, but for what tests asked with the bastion's token."""
    log = Path(os.environ["KUBECONFIG"]).parents[1] / "logs/audit.log"
    recorded = [json.loads(line) for line in log.read_text().splitlines()]
    return [one for one in recorded if one.get("userAgent") != AGENT]


def moment(time: str) -> float:
    """The time of a record of the bastion or of the API server, in seconds since 1970.
    The bastion leaves out zeros at the end of a fraction."""
    return datetime.fromisoformat(time).timestamp()
