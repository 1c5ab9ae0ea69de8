"""Argo CD, as its own API shows it."""

import base64
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from environment.cluster import Cluster
from environment.objects import Object
from environment.waiting import until

NAMESPACE = "argocd"
APPROVED = "argocd.argoproj.io/deletion-approved"
# How often health is read while somebody watches.
PERIOD = 0.2
# Argo CD compares at once after a sync. Where its cache does not show yet what it has
# applied, it applies the same revision once more. (Seen within 0.3 s; events have whole
# seconds.)
REPEATS_WITHIN = timedelta(seconds=2)


def without_repetitions(syncs: list[tuple[datetime, str]]) -> int:
    """How many syncs began, by time and message, which names the revision.

    Each may be repeated once, so that a fight is counted.
    """
    count = 0
    repeatable: tuple[datetime, str] | None = None
    for at, message in syncs:
        if (
            repeatable is not None
            and message == repeatable[1]
            and at - repeatable[0] <= REPEATS_WITHIN
        ):
            repeatable = None
        else:
            count += 1
            repeatable = at, message
    return count


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
        """An Application; empty while there is none."""
        try:
            found: Object = self._ask(f"/api/v1/applications/{name}")
        except urllib.error.HTTPError as error:
            # 403: Argo CD tells nobody which names exist.
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
        """The node of an Application's tree of that kind; empty while there is none."""
        tree = self._ask(f"/api/v1/applications/{name}/resource-tree")
        nodes: list[Object] = tree.get("nodes") or []
        return next((node for node in nodes if node["kind"] == kind), {})

    def confirm_deletion(self, name: str) -> None:
        """What `argocd app confirm-deletion` does."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._cluster.kubectl(
            *["annotate", "application", name, "-n", NAMESPACE, f"{APPROVED}={now}"]
        )

    def operations(self, name: str) -> int:
        """How many syncs of an Application have begun, each with its repetition."""
        uid = self.application(name)["metadata"]["uid"]
        selector = f"involvedObject.uid={uid},reason=OperationStarted"
        events = self._cluster.all("events", NAMESPACE, fields=selector)
        syncs = [
            (datetime.fromisoformat(event["firstTimestamp"]), event["message"])
            for event in events
        ]
        return without_repetitions(sorted(syncs))

    def await_health(self, name: str, health: str, seconds: float = 60) -> Object:
        """The Application once it is so; fails with what it says instead."""
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
    def watched(self, name: str) -> Iterator[list[str]]:
        """Every health that an Application has meanwhile, in order."""
        seen: list[str] = []
        over = threading.Event()

        def look() -> None:
            health = self.health(name)
            if health and (not seen or seen[-1] != health):
                seen.append(health)

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
            # The test may have seen a health that came after the last look.
            look()

    def _ask(self, path: str, body: Any = None) -> Any:
        pods = self._cluster.all(
            "pods", NAMESPACE, "app.kubernetes.io/name=argocd-server"
        )
        (address,) = [pod["status"]["podIP"] for pod in pods]
        request = urllib.request.Request(
            f"http://{address}:8080{path}",
            data=json.dumps(body).encode() if body else None,
            headers={
                "Authorization": f"Bearer {self._token}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
