"""Reads Argo CD through its own API."""

import base64
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from environment.cluster import Cluster
from environment.objects import Object
from environment.waiting import until

NAMESPACE = "argocd"
# Seconds between two reads of the health in `watched`.
PERIOD = 0.2
# Argo CD compares at once after a sync. If its cache does not show the applied objects
# yet, Argo CD applies the same revision once more. This was seen within 0.3 s. The
# times of events are in whole seconds.
REPEATS_WITHIN = timedelta(seconds=2)


def without_repetitions(syncs: list[tuple[datetime, str]], ends: list[datetime]) -> int:
    """The number of syncs, given by time and message. The message names the revision.

    `ends` are the times at which the syncs ended, in order. They have whole seconds, so a
    sync may end in the second in which it began. One repetition of each sync, right after
    its end, is not counted. Argo CD repeats a sync more often if it fights with a
    controller, and those repetitions are counted.
    """
    count = 0
    repeatable: str | None = None
    # No sync begins before the one before it has ended.
    before = [None, *ends, *[None] * len(syncs)]
    for (at, message), end in zip(syncs, before, strict=False):
        follows = end is not None and timedelta() <= at - end <= REPEATS_WITHIN
        if follows and message == repeatable:
            repeatable = None
        else:
            count += 1
            repeatable = message
    return count


@dataclass(frozen=True)
class Seen:
    """A health of an Application, and the status of its claim right after it."""

    health: str
    status: Object

    def is_ready_on_another(self, lost: str) -> bool:
        """Whether the claim is in phase Ready, with another instance than the lost one."""
        has = self.status.get("instanceId")
        return self.status.get("phase") == "Ready" and has not in (None, lost)


class ArgoCd:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._token = ""

    def log_in(self) -> None:
        secret = self._cluster.get("secret", "argocd-initial-admin-secret", NAMESPACE)
        assert secret is not None, "Argo CD has made no password yet"
        password = base64.b64decode(secret["data"]["password"]).decode()
        session = {"username": "admin", "password": password}
        self._token = self._ask("/api/v1/session", session)["token"]

    def application(self, name: str) -> Object:
        """An Application, or an empty object if it does not exist."""
        try:
            found: Object = self._ask(f"/api/v1/applications/{name}")
        except urllib.error.HTTPError as error:
            # Argo CD answers 403 for an unknown name, because it does not tell which
            # names exist.
            if error.code in (403, 404):
                return {}
            raise
        return found

    def applications(self, prefix: str) -> list[str]:
        found = self._cluster.all("applications", NAMESPACE)
        names = [one["metadata"]["name"] for one in found]
        return [name for name in names if name.startswith(prefix)]

    def health(self, name: str) -> str:
        status = self.application(name).get("status", {})
        health: str = status.get("health", {}).get("status", "")
        return health

    def resource(self, name: str, kind: str) -> Object:
        """The node of this kind in an Application's tree, or an empty object."""
        tree = self._ask(f"/api/v1/applications/{name}/resource-tree")
        nodes: list[Object] = tree.get("nodes") or []
        return next((node for node in nodes if node["kind"] == kind), {})

    def of_member(self, group: str) -> "ArgoCd":
        """Argo CD as a member of this group sees it.

        Roles of projects name groups, and take the name of an account as well.
        """
        account = json.dumps({"data": {f"accounts.{group}": "apiKey"}})
        self._cluster.kubectl(
            *("patch", "configmap", "argocd-cm", "-n", NAMESPACE),
            *("--type=merge", "-p", account),
        )
        body = {"name": group, "expiresIn": 3600}

        def token() -> str | None:
            try:
                made: str = self._ask(f"/api/v1/account/{group}/token", body)["token"]
            except urllib.error.HTTPError:
                return None
            return made

        member = ArgoCd(self._cluster)
        member._token = until("Argo CD to read the account", token, 60)
        return member

    def confirm_deletion(self, parent: str, name: str) -> None:
        """Runs our action on an Application, in the tree of another one."""
        body = {
            "namespace": NAMESPACE,
            "resourceName": name,
            "group": "argoproj.io",
            "version": "v1alpha1",
            "kind": "Application",
            "action": "confirm-deletion",
        }
        self._ask(f"/api/v1/applications/{parent}/resource/actions/v2", body)

    def run(self, application: str, namespace: str, claim: str, action: str) -> None:
        """Runs our action on a claim of an Application."""
        body = {
            "namespace": namespace,
            "resourceName": claim,
            "group": "platform.acme.io",
            "version": "v1alpha1",
            "kind": "GpuDevWorkspaceClaim",
            "action": action,
        }
        self._ask(f"/api/v1/applications/{application}/resource/actions/v2", body)

    def is_refused(self, act: Callable[[], object]) -> bool:
        """Whether Argo CD refuses something for lack of a right."""
        try:
            act()
        except urllib.error.HTTPError as error:
            return error.code == 403
        return False

    def update(self, name: str, project: str) -> None:
        """Gives an Application another branch."""
        patch = json.dumps({"spec": {"source": {"targetRevision": "other"}}})
        body = {"patch": patch, "patchType": "merge", "project": project}
        self._ask(f"/api/v1/applications/{name}", body, method="PATCH")

    def operations(self, name: str) -> int:
        """How many syncs of an Application have begun, see `without_repetitions`."""
        uid = self.application(name)["metadata"]["uid"]

        def events(reason: str) -> list[tuple[datetime, str]]:
            selector = f"involvedObject.uid={uid},reason={reason}"
            return sorted(
                (datetime.fromisoformat(event["firstTimestamp"]), event["message"])
                for event in self._cluster.all("events", NAMESPACE, fields=selector)
            )

        ends = [at for at, _ in events("OperationCompleted")]
        return without_repetitions(events("OperationStarted"), ends)

    def await_health(self, name: str, health: str, seconds: float = 60) -> Object:
        """The Application once it has this health. A failure shows its status."""
        seen: Object = {}

        def look() -> Object | None:
            seen.update(self.application(name))
            is_there = seen.get("status", {}).get("health", {}).get("status") == health
            return seen if is_there else None

        try:
            return until(f"Application {name} to be {health}", look, seconds)
        except AssertionError as error:
            status = json.dumps(seen.get("status", {}), indent=1)
            raise AssertionError(f"{error}; it says\n{status[:6000]}") from None

    @contextmanager
    def watched(
        self, name: str, status: Callable[[], Object] = dict
    ) -> Iterator[list[Seen]]:
        """Yields a list that collects every health of an Application, in order. `status` reads
        the status of its claim."""
        seen: list[Seen] = []
        over = threading.Event()

        def look() -> None:
            health = self.health(name)
            if health and (not seen or seen[-1].health != health):
                seen.append(Seen(health, status()))

        def watch() -> None:
            while not over.wait(PERIOD):
                look()

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield seen
        finally:
            over.set()
            thread.join()
            # The test may have seen a health that is newer than the last read.
            look()

    def _ask(self, path: str, body: Any = None, method: str | None = None) -> Any:
        pods = self._cluster.all(
            "pods", NAMESPACE, "app.kubernetes.io/name=argocd-server"
        )
        (address,) = [pod["status"]["podIP"] for pod in pods]
        request = urllib.request.Request(
            f"http://{address}:8080{path}",
            data=json.dumps(body).encode() if body else None,
            method=method,
            headers={
                "Authorization": f"Bearer {self._token}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
