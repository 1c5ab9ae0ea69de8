"""Applies workspaces with kubectl, as the function composes them."""

import base64
import json
import string
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MANIFEST = HERE.parent / "manifests/workspace.yaml"
SCRIPTS = HERE.parents[2] / "function/cluster/programs"
NAMESPACE = "workspaces"
PERIOD = 0.5


def kubectl(*arguments: str, given: str = "", check: bool = True) -> str:
    done = subprocess.run(
        ["kubectl", *arguments], input=given, text=True, capture_output=True
    )
    if check and done.returncode:
        raise AssertionError(f"kubectl {arguments}: {done.stderr or done.stdout}")
    return done.stdout


def until(what: str, look: Callable[[], Any], seconds: float = 120) -> Any:
    """The first result of `look` that is true."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:.0f} s for {what}")
        time.sleep(PERIOD)
    return found


def namespace() -> None:
    """Creates the namespace, with the Pod Security Standard `restricted`."""
    labels = {
        f"pod-security.kubernetes.io/{mode}": "restricted"
        for mode in ["enforce", "warn"]
    }
    document = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": labels},
    }
    kubectl("apply", "-f", "-", given=json.dumps(document))


@dataclass(frozen=True)
class Workspace:
    name: str
    nodes: int

    def pods(self) -> list[str]:
        return [f"{self.name}-{index}" for index in range(self.nodes)]

    def pod(self, name: str) -> dict[str, Any]:
        text = kubectl("-n", NAMESPACE, "get", "pod", name, "-o", "json", check=False)
        found = json.loads(text) if text else {}
        assert isinstance(found, dict)
        return found

    def address(self, index: int) -> str:
        return str(self.pod(f"{self.name}-{index}")["status"]["podIP"])

    def ready(self, name: str) -> bool:
        pod = self.pod(name)
        conditions = pod.get("status", {}).get("conditions", [])
        leaving = "deletionTimestamp" in pod.get("metadata", {})
        return not leaving and any(
            c["type"] == "Ready" and c["status"] == "True" for c in conditions
        )

    def wait(self, seconds: float = 180) -> None:
        for pod in self.pods():
            until(f"{pod} to be ready", lambda: self.ready(pod), seconds)

    def secret(self) -> dict[str, str]:
        text = kubectl("-n", NAMESPACE, *_secret(self.name), "-o", "json")
        data = json.loads(text).get("data", {})
        return {k: base64.b64decode(v).decode() for k, v in data.items()}

    def delete_pod(self, index: int, *options: str) -> None:
        kubectl("-n", NAMESPACE, "delete", "pod", f"{self.name}-{index}", *options)

    def termination_message(self, index: int = 0) -> str:
        """The termination message of a container that failed."""
        status = self.pod(f"{self.name}-{index}").get("status", {})
        kinds = ["initContainerStatuses", "containerStatuses"]
        for container in [c for kind in kinds for c in status.get(kind, [])]:
            for state in [container["state"], container.get("lastState", {})]:
                message = state.get("terminated", {}).get("message")
                if message and state["terminated"]["exitCode"]:
                    return str(message)
        return ""


def _secret(name: str) -> Sequence[str]:
    return "get", "secret", f"{name}-host-keys"


def apply(
    name: str,
    image: str,
    keys: Sequence[str],
    nodes: int = 1,
    change: Callable[[str], str] = lambda text: text,
) -> Workspace:
    """Applies the manifest of a workspace. `change` may modify the manifest first."""
    files = ["create", "configmap", f"{name}-files", f"--from-file={SCRIPTS}"]
    dry = ["--dry-run=client", "-o", "yaml"]
    kubectl("apply", "-f", "-", given=kubectl("-n", NAMESPACE, *files, *dry))
    hosts = [f"{name}-{i}.{name}.{NAMESPACE}.svc.cluster.local" for i in range(nodes)]
    text = string.Template(MANIFEST.read_text()).substitute(
        NAME=name,
        NAMESPACE=NAMESPACE,
        IMAGE=image,
        NODES=nodes,
        HOSTS=" ".join(hosts),
        KEYS="\n    ".join(keys),
    )
    kubectl("apply", "-f", "-", given=change(text))
    return Workspace(name, nodes)


def delete(name: str) -> None:
    kinds = "statefulset,service,configmap,secret,role,rolebinding,serviceaccount"
    names = [name, f"{name}-files", f"{name}-keys", f"{name}-host-keys"]
    kubectl(*["-n", NAMESPACE, "delete", "--ignore-not-found", kinds], *names)
