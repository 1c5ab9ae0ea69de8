"""A jump host: Debian's sshd in a pod, without privileges, that forwards connections."""

from pathlib import Path

from cluster.workspaces import Key
from environment import registry
from environment.cluster import Cluster, is_ready
from environment.objects import Object
from environment.waiting import until

NAMESPACE = "gpu-jump"
NAME = "jump"
PORT = 2222
USER = "developer"
CONTAINER = "sshd"

# Where nothing is said about it, sshd's defaults. Like the bastion's, it writes down each
# login. A hundred people may arrive at once.
CONFIGURATION = f"""\
Port {PORT}
HostKey /etc/jump/host/ssh_host_ed25519_key
PidFile none
UsePAM no
AuthorizedKeysFile /etc/jump/people/authorized_keys
# The kubelet mounts the keys as a folder that everybody may write.
StrictModes no
AuthenticationMethods publickey
AllowTcpForwarding local
PermitOpen *:22
X11Forwarding no
AllowAgentForwarding no
PrintMotd no
UseDNS no
MaxStartups 256:30:512
ClientAliveInterval 5
ClientAliveCountMax 3
LogLevel VERBOSE
"""


class Jump:
    """The jump host's pod."""

    def __init__(self, cluster: Cluster, people: str, folder: Path) -> None:
        """Starts the pod. `people` are the public keys, as lines."""
        self.cluster = cluster
        self.host = Key.generate(folder, "jump_host")
        image = registry.newest("images/workspace", "bastion", prefix="cpu-")
        for document in manifests(image, self.host.private.read_text(), people):
            cluster.apply(document)
        until("the jump host", lambda: is_ready(self.pod()), 120)

    def pod(self) -> Object | None:
        return self.cluster.get("pod", NAME, NAMESPACE)

    def address(self) -> str:
        found = self.pod()
        assert found is not None, "the jump host has no pod"
        return str(found["status"]["podIP"])

    def container(self) -> str:
        """The id of sshd's container."""
        found = self.pod()
        assert found is not None, "the jump host has no pod"
        (status,) = found["status"]["containerStatuses"]
        return str(status["containerID"]).removeprefix("containerd://")

    def admit_to(self, namespace: str) -> None:
        """Lets the jump host into the pods of a namespace."""
        source = {"kubernetes.io/metadata.name": NAMESPACE}
        peer = {"namespaceSelector": {"matchLabels": source}}
        rule = {"from": [peer], "ports": [{"port": 22}]}
        self.cluster.apply(
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": {"name": "jump", "namespace": namespace},
                "spec": {
                    "podSelector": {},
                    "policyTypes": ["Ingress"],
                    "ingress": [rule],
                },
            }
        )

    def remove(self) -> None:
        self.cluster.kubectl("delete", "namespace", NAMESPACE, "--timeout=120s")


def manifests(image: str, host_key: str, people: str) -> list[Object]:
    def named(kind: str, name: str) -> Object:
        metadata = {"name": name, "namespace": NAMESPACE}
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata}

    def volume(name: str, **source: Object) -> Object:
        return {"name": name, **source}

    mounts = {"host": "/etc/jump/host", "people": "/etc/jump/people"}
    files = {**mounts, "configuration": "/etc/jump/configuration"}
    container = {
        "name": CONTAINER,
        "image": image,
        "command": ["/usr/sbin/sshd", "-D", "-e"],
        "args": ["-f", "/etc/jump/configuration/sshd_config"],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 2},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        # As much as both containers of the bastion.
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [
            {"name": name, "mountPath": path, "readOnly": True}
            for name, path in files.items()
        ],
    }
    pod = {
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "runAsGroup": 1000,
            "fsGroup": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [
            volume("host", secret={"secretName": "host", "defaultMode": 0o440}),
            volume("people", configMap={"name": "people"}),
            volume("configuration", configMap={"name": "configuration"}),
        ],
    }
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"name": NAMESPACE, "labels": level}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": namespace},
        {
            **named("Secret", "host"),
            "stringData": {"ssh_host_ed25519_key": host_key},
        },
        {**named("ConfigMap", "people"), "data": {"authorized_keys": people}},
        {
            **named("ConfigMap", "configuration"),
            "data": {"sshd_config": CONFIGURATION},
        },
        {**named("Pod", NAME), "spec": pod},
    ]
