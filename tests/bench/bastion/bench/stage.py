"""The cluster as the benchmark needs it: people with a workspace each, the bastion, a jump
host, and ssh's configuration for all ways."""

import json
from pathlib import Path

from bastion import crowd
from bastion.door import PORT, Door, requests
from cluster.workspaces import HOST_NETWORK, Key, Workspaces
from environment import registry
from environment.cluster import Cluster, is_ready
from environment.variants import flavor
from environment.waiting import until

from bench import jump
from bench.installation import install
from bench.jump import Jump
from bench.ways import Way

# A person has at most 32 sessions on one replica of the bastion.
PEOPLE = 10
WORKSPACE = "work"


class Stage:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cluster = Cluster.from_environment()
        self.door = Door(self.cluster, folder)
        self.key = Key.generate(folder, "people")
        self.people: list[Workspaces] = []
        # The namespace and the name of each person's pod.
        self.pods: list[tuple[str, str]] = []
        self.jump: Jump | None = None
        self.config = folder / "ssh_config"

    def build(self) -> None:
        """Everything that the ways need. All sessions go to one replica of the bastion, as
        there is one jump host."""
        lets_host_in = {"data": {"sshCidrCeiling": [HOST_NETWORK]}}
        self.cluster.kubectl(
            *("patch", "environmentconfig", "gpu-workspace-limits", "--type=merge"),
            *("-p", json.dumps(lets_host_in)),
        )
        image = registry.newest("images/workspace", "bastion", prefix="cpu-")
        name = flavor(self.cluster, image, "cpu-small")
        until(
            f"WorkspaceFlavor {name} to be Ready",
            lambda: is_ready(self.cluster.get("workspaceflavors", name, "default")),
        )
        install(self.cluster)
        self.people = crowd.create(self.cluster, PEOPLE, self.key)
        crowd.await_ready(self.people)
        crowd.claim_each(self.people, WORKSPACE)
        for owner in self.people:
            (pod,) = owner.pods(WORKSPACE)
            self.pods.append((owner.namespace, pod["metadata"]["name"]))
        self.jump = Jump(self.cluster, self.key.public, self.folder)
        for one in self.people:
            self.jump.admit_to(one.namespace)
        self.config.write_text(self._ssh_config())

    def strike(self) -> None:
        """Removes what `build` made, except the bastion."""
        if self.jump:
            self.jump.remove()
        if self.people:
            crowd.forget(self.people)

    def line(
        self, way: Way, number: int, *words: str, flags: tuple[str, ...] = ()
    ) -> list[str]:
        """A command line of ssh to the workspace of a person. With `port-forward`, `flags`
        has the port."""
        host = f"{number % PEOPLE}.{way.value}"
        return ["ssh", "-F", str(self.config), *flags, host, *words]

    def front(self, way: Way, number: int, *words: str) -> list[str]:
        """A command line of ssh that ends at the host in front of the workspaces."""
        front = {Way.BASTION: f"bastion-{number % PEOPLE}", Way.JUMP: "jump"}
        return ["ssh", "-F", str(self.config), front[way], *words]

    def container(self, way: Way) -> str:
        """The id of the container with sshd that is in front of the workspaces."""
        if way is Way.JUMP:
            assert self.jump is not None
            return self.jump.container()
        sshd = self.door.container("sshd")
        return str(sshd["containerID"]).removeprefix("containerd://")

    def requests(self) -> int:
        """How many requests for people the API server had from the bastion."""
        return sum("impersonatedUser" in one for one in requests())

    def _ssh_config(self) -> str:
        assert self.jump is not None
        bastion_key = " ".join(self.door.known_hosts().read_text().split()[1:3])
        known = [f"bastion {bastion_key}", f"jump {self.jump.host.public}"]
        blocks = [
            _block("jump", HostName=self.jump.address(), Port=jump.PORT),
            _block("jump", HostKeyAlias="jump", User=jump.USER),
            _block(
                "bastion-*",
                HostName=self.door.address(),
                Port=PORT,
                HostKeyAlias="bastion",
            ),
        ]
        for number, one in enumerate(self.people):
            status = one.status(WORKSPACE)
            (host_key,) = status["hostKeys"]
            known.append(f"workspace-{number} {host_key}")
            address = status["nodes"][0]["ip"]
            through = f"ssh -F {self.config} bastion-{number} connect {WORKSPACE}"
            blocks += [
                _block(f"bastion-{number}", User=one.owner),
                _block(f"{number}.*", HostKeyAlias=f"workspace-{number}"),
                _block(f"{number}.*", User="developer"),
                _block(f"{number}.{Way.BASTION.value}", ProxyCommand=through),
                _block(f"{number}.{Way.JUMP.value}", ProxyJump="jump"),
                _block(f"{number}.{Way.FORWARD.value}", HostName="127.0.0.1"),
                _block(f"{number}.*", HostName=address),
            ]
        known_hosts = self.folder / "benchmark_known_hosts"
        known_hosts.write_text("".join(f"{line}\n" for line in known))
        everywhere = _block(
            "*",
            IdentityFile=self.key.private,
            IdentitiesOnly="yes",
            UserKnownHostsFile=known_hosts,
            GlobalKnownHostsFile="none",
            StrictHostKeyChecking="yes",
            BatchMode="yes",
            # As docs/bastion.md and devctl have it.
            Ciphers="^aes128-gcm@openssh.com",
        )
        return "".join([*blocks, everywhere])


def _block(host: str, **settings: object) -> str:
    lines = [f"  {name} {value}\n" for name, value in settings.items()]
    return f"Host {host}\n{''.join(lines)}"
