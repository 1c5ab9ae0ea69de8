"""The cluster. Tests change it as users do by kubectl."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from .objects import Exists, Missing, Object, Objects, Refused
from .waiting import until

CLAIMS = "gpudevworkspaceclaims.platform.acme.io"
SYSTEM = "crossplane-system"


class Cluster:
    # The kind of the composites. A claim has a composite, or is a composite itself.
    composites = "gpudevworkspaces.platform.acme.io"
    # How kubectl deletes claims. A claim with a composite specifies itself that its
    # deletion waits for the composed resources.
    cascade = "background"

    @classmethod
    def from_environment(cls) -> "Cluster":
        if "KUBECONFIG" not in os.environ:
            raise RuntimeError("no KUBECONFIG: run the suite by `make e2e SUITE=…`")
        cluster = cls()
        cluster.kubectl("get", "--raw", "/readyz")
        return cluster

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        ran = subprocess.run(
            ["kubectl", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode != 0:
            raise Refused(ran.stderr.strip())
        return ran.stdout

    @cached_property
    def objects(self) -> Objects:
        return Objects.of_kubeconfig()

    def get(self, kind: str, name: str, namespace: str) -> Object | None:
        return self.objects.get(kind, name, namespace)

    def all(
        self, kind: str, namespace: str, labels: str = "", fields: str = ""
    ) -> list[Object]:
        return self.objects.all(kind, namespace, labels, fields)

    def apply(self, document: Object) -> None:
        """Applies an object, or each of a List, as `kubectl apply` does."""
        for one in document["items"] if document["kind"] == "List" else [document]:
            try:
                self.objects.create(one)
            except Exists:
                # What differs from what was applied before, only kubectl knows.
                self.kubectl("apply", "-f", "-", stdin=json.dumps(one))

    def may(self, user: str, *what: str) -> bool:
        """Whether a user has a right. `what` are the arguments of `kubectl auth can-i`."""
        try:
            said = self.kubectl("auth", "can-i", *what, f"--as={user}")
        except Refused as refused:
            # If the answer is no, the exit status of kubectl is not 0. Its stderr may have
            # a warning about a cluster-scoped resource.
            assert "rror" not in str(refused), refused
            return False
        return said.strip().startswith("yes")

    @contextmanager
    def without(self, kind: str, name: str) -> Iterator[None]:
        """Deletes an object of the cluster, and creates it again at the end."""
        found: Object = json.loads(self.kubectl("get", kind, name, "-o", "json"))
        self.kubectl("delete", kind, name)
        try:
            yield
        finally:
            # The other fields of `metadata` are the API server's.
            bare = {**found, "metadata": {"name": name}}
            self.kubectl("apply", "-f", "-", stdin=json.dumps(bare))

    def create_namespace(self, name: str, owner: str = "alice") -> None:
        """Creates a namespace. Its label names the only owner of the claims in it."""
        labels = {"platform.acme.io/owner": owner}
        metadata = {"name": name, "labels": labels}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        self.objects.create(namespace)

    def delete_namespace(self, name: str) -> None:
        self.objects.delete("namespaces", name, "")

    def delete(self, kind: str, name: str, namespace: str, seconds: float) -> None:
        """Deletes an object, and waits until it is gone."""
        found = self.get(kind, name, namespace)
        self.objects.delete(kind, name, namespace)
        self._await_end(kind, namespace, [found] if found else [], seconds)

    def delete_claim(self, name: str, namespace: str, seconds: int) -> None:
        """Deletes a claim by the command line that the documentation gives."""
        self.kubectl(
            *("delete", CLAIMS, name, "-n", namespace),
            *(f"--cascade={self.cascade}", f"--timeout={seconds}s"),
        )

    def delete_claims(self, namespace: str, seconds: float = 180) -> None:
        claims = self.all(CLAIMS, namespace)
        for one in claims:
            name = one["metadata"]["name"]
            try:
                self.objects.delete(CLAIMS, name, namespace, self.cascade)
            except Missing:
                # Crossplane or another client has deleted the claim since it was listed.
                continue
        self._await_end(CLAIMS, namespace, claims, seconds)

    def _await_end(
        self, kind: str, namespace: str, objects: list[Object], seconds: float
    ) -> None:
        ending = {one["metadata"]["uid"] for one in objects}

        def left() -> list[Object]:
            now = self.all(kind, namespace)
            return [one for one in now if one["metadata"]["uid"] in ending]

        what = f"the {kind} of {namespace} to go"
        until(what, lambda: not left(), seconds, instead=left)

    def pods(self, package: str) -> list[Object]:
        """The pods of a package that are not being deleted.

        `package` is, for example, `provider=acme-provider-gpu-spot`.
        """
        pods = self.all("pods", SYSTEM, f"pkg.crossplane.io/{package}")
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def processes(self, pod: Object) -> list[int]:
        """The first process of each of a pod's containers."""
        return [
            self.process_of(status) for status in pod["status"]["containerStatuses"]
        ]

    def process_of(self, container: Object) -> int:
        """The first process of a container, by its status."""
        return _process_of(container["containerID"].removeprefix("containerd://"))

    def processes_in(self, container: str) -> list[int]:
        """All processes of a container, by its id."""
        return _processes_of(container)

    def kill(self, pod: Object, processes: list[int] | None = None) -> None:
        """Sends SIGKILL to the containers' processes, and deletes the pod.

        In the same pod, the kubelet would wait longer after each crash. A new pod
        starts at once.
        """
        for process in processes or self.processes(pod):
            os.kill(process, signal.SIGKILL)
        self.kubectl(
            "delete",
            "pod",
            "-n",
            SYSTEM,
            pod["metadata"]["name"],
            "--now",
            "--wait=false",
        )

    def replace_pods(self, package: str) -> None:
        """Deletes the pods of a package and waits until others are ready."""
        old = {pod["metadata"]["uid"] for pod in self.pods(package)}
        for pod in self.pods(package):
            self.kubectl("delete", "pod", "-n", SYSTEM, pod["metadata"]["name"])
        until(f"new pods of {package}", lambda: self.renewed(package, old))

    def renewed(self, package: str, old: set[str]) -> bool:
        pods = self.pods(package)
        return bool(pods) and all(
            pod["metadata"]["uid"] not in old and is_ready(pod) for pod in pods
        )


def condition(resource: Object | None, type_: str) -> Object:
    """A condition, or an empty one."""
    conditions = (resource or {}).get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == type_), {})


def is_ready(resource: Object | None) -> bool:
    return condition(resource, "Ready").get("status") == "True"


def _process_of(container: str) -> int:
    """The first process of a container."""
    found = _processes_of(container)
    if not found:
        raise AssertionError(f"no process runs in container {container}")
    return found[0]


def _processes_of(container: str) -> list[int]:
    """The processes of a container, whose cgroup's path has the container's id."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                paths = (entry / "cgroup").read_text()
            except OSError:
                continue
            if container in paths:
                found.append(int(entry.name))
    return found
