"""The portal in the cluster, by its own manifests, and the provider of identities beside it."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import yaml

from documents import suites

from environment.cluster import Cluster, is_ready
from environment.objects import Object
from environment.waiting import until

ROOT = Path(__file__).parents[3]
MANIFESTS = ROOT / "portal/manifests"
NAMESPACE = "gpu-portal"
REPLICAS = 2
# How people at this machine reach the portal.
SERVICE = "gpu-portal-of-this-machine"
PATIENCE = 120


@dataclass(frozen=True)
class SignIn:
    """Where people sign in, as the cluster's files say (tests/cluster/src/identities.rs)."""

    state: Path

    @classmethod
    def of_cluster(cls) -> "SignIn":
        return cls(Path(os.environ["KUBECONFIG"]).parents[1])

    def certificate(self, name: str) -> Path:
        return self.state / "certificates" / name

    @property
    def authority(self) -> Path:
        return self.certificate("ca.crt")

    @property
    def authentication(self) -> str:
        """The API server's AuthenticationConfiguration."""
        return (self.state / "configuration/authentication.json").read_text()

    @property
    def dex(self) -> Any:
        path = self.state / "configuration/dex.json"
        assert path.exists(), "no dex: run the suite by `make e2e SUITE=portal`"
        return json.loads(path.read_text())

    @property
    def client(self) -> Any:
        (client,) = self.dex["staticClients"]
        return client

    @property
    def portal(self) -> str:
        """Where people reach the portal."""
        (address,) = self.client["redirectURIs"]
        return str(address).removesuffix("/login/callback")

    def id_token(self, name: str, password: str) -> str:
        """A token of a person, as a plugin of kubectl gets it."""
        wanted = {
            "grant_type": "password",
            "username": f"{name}@acme.io",
            "password": password,
            "scope": "openid email profile groups",
        }
        answer = requests.post(
            f"{self.dex['issuer']}/token",
            data=wanted,
            auth=(self.client["id"], self.client["secret"]),
            verify=str(self.authority),
        )
        assert answer.status_code == 200, answer.text
        return str(answer.json()["id_token"])


@dataclass(frozen=True)
class Installation:
    cluster: Cluster
    sign_in: SignIn

    def install(self, image: str, folder: Path) -> None:
        """By the commands of docs/portal.md, and with a port of the node for this machine."""
        self.cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found")
        files = {
            **self.files("Account"),
            "client-secret": self.sign_in.client["secret"],
            "tls.crt": self.sign_in.certificate("portal.crt").read_text(),
            "tls.key": self.sign_in.certificate("portal.key").read_text(),
        }
        for name, text in files.items():
            (folder / name).write_text(text)
        print(suites.run("portal", {"IMAGE": image, "FOLDER": str(folder)}))
        port = int(self.sign_in.portal.rsplit(":", 1)[1])
        self.cluster.apply(service(port))
        self.await_replicas()
        until("the node to forward its port", self.answers)

    def answers(self) -> bool:
        """Whether the portal answers at the address that people have."""
        with requests.Session() as http:
            http.trust_env = False
            try:
                page = http.get(self.sign_in.portal, verify=str(self.sign_in.authority))
            except requests.ConnectionError:
                return False
            return page.ok

    def apply(self, name: str) -> None:
        self.cluster.kubectl("apply", "-f", str(MANIFESTS / f"{name}.yaml"))

    def remove(self, name: str) -> None:
        self.cluster.kubectl("delete", "-f", str(MANIFESTS / f"{name}.yaml"))

    def configure(self, act_as: str) -> None:
        """Changes the configuration. Pods that run keep the one that they began with."""
        data = self.files(act_as)
        self.cluster.kubectl(
            *("patch", "configmap", "gpu-portal", "-n", NAMESPACE, "--type=merge"),
            *("-p", json.dumps({"data": data})),
        )

    def files(self, act_as: str) -> dict[str, str]:
        configuration = {
            "publicUrl": self.sign_in.portal,
            "authentication": "/etc/gpu-portal/authentication.yaml",
            "client": {
                "id": self.sign_in.client["id"],
                "secretFile": "/etc/gpu-portal/client-secret",
            },
            "groups": {"include": ["acme:vis*", "acme:platform"]},
            "actAs": act_as,
        }
        return {
            "portal.yaml": yaml.safe_dump(configuration),
            "authentication.yaml": self.sign_in.authentication,
        }

    def restart(self) -> None:
        """Replaces all pods, one after the other. Returns when the old ones are gone."""
        where = ("deployment/gpu-portal", "-n", NAMESPACE)
        self.cluster.kubectl("rollout", "restart", *where)
        self.await_replicas()
        until("old pods to be gone", lambda: self.all() == self.pods(), 25)

    def await_replicas(self) -> None:
        self.cluster.kubectl(
            *("rollout", "status", "deployment/gpu-portal", "-n", NAMESPACE),
            f"--timeout={PATIENCE}s",
        )
        until("two replicas", lambda: len(self.ready()) == REPLICAS, PATIENCE)

    def pods(self) -> list[Object]:
        """The pods that are not being deleted."""
        found = self.all()
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def all(self) -> list[Object]:
        return self.cluster.all("pods", NAMESPACE, "app.kubernetes.io/name=gpu-portal")

    def ready(self) -> list[Object]:
        return [pod for pod in self.pods() if is_ready(pod)]

    def measured(self, name: str) -> float:
        """The sum of a metric of all replicas."""
        return sum(value(self.metrics(pod), name) for pod in self.ready())

    def metrics(self, pod: Object) -> str:
        with requests.Session() as http:
            http.trust_env = False
            address = pod["status"]["podIP"]
            return http.get(f"http://{address}:8080/metrics", timeout=10).text

    def token(self) -> str:
        """The token of a pod, as somebody reads it who got into the container."""
        process = self.cluster.process_of(
            self.ready()[0]["status"]["containerStatuses"][0]
        )
        path = "var/run/secrets/kubernetes.io/serviceaccount/token"
        return Path(f"/proc/{process}/root/{path}").read_text()

    def log(self) -> str:
        """What all replicas have written."""
        return "".join(
            self.cluster.kubectl("logs", pod["metadata"]["name"], "-n", NAMESPACE)
            for pod in self.pods()
        )

    def recorded(self, request: str) -> list[Any]:
        """What the API server recorded of a request that writes, without what it only tried."""
        log = self.sign_in.state / "logs/audit.log"
        records = [json.loads(line) for line in log.read_text().splitlines()]
        return [
            one
            for one in records
            if one["auditID"] == request and "dryRun" not in one["requestURI"]
        ]


def named(kind: str, name: str, **fields: Any) -> Object:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}


def service(port: int) -> Object:
    """A port of the node, in addition to the Service of the manifests."""
    ports = [{"name": "https", "port": 443, "targetPort": "https", "nodePort": port}]
    selector = {"app.kubernetes.io/name": "gpu-portal"}
    spec = {"type": "NodePort", "selector": selector, "ports": ports}
    return named("Service", SERVICE, spec=spec)


def value(metrics: str, name: str) -> float:
    lines = [line for line in metrics.splitlines() if line.startswith(f"{name} ")]
    return float(lines[0].split()[-1]) if lines else 0
