"""Rights that change all the time: nobody sees for longer than 5 s what they may not see any more."""

import base64
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from cluster import CLAIMS, Cluster
from conftest import signed_in
from people import Browser
from stage import Places
from test_own_rights import persons as persons  # a portal that acts as the persons

# A minute, and 200 namespaces.
pytestmark = pytest.mark.thorough
NAMESPACES = 200
SECONDS = 60
# Changes of rights, and changes of claims, each second.
FLIPS = 10
CHANGES = 40
SEED = 5
# How long a page may show what the API server would refuse.
GRACE = 5.0
OWNERS = "gpu-workspaces-owner"
GROUP = "/apis/platform.acme.io/v1alpha1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


class Api:
    """The API server as its administrator, without a process for each request."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        (of_cluster,) = (one["cluster"] for one in config["clusters"])
        (user,) = (one["user"] for one in config["users"])
        self.server: str = of_cluster["server"]
        self.http = requests.Session()
        self.http.trust_env = False
        self.http.verify = material(of_cluster, "certificate-authority", folder)
        self.http.cert = (
            material(user, "client-certificate", folder),
            material(user, "client-key", folder),
        )

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> None:
        answer = self.http.request(
            method, f"{self.server}{path}", json=body, headers=headers or None
        )
        assert answer.ok, answer.text


def material(entry: dict[str, str], name: str, folder: Path) -> str:
    """A file of a kubeconfig, which may have its content instead."""
    if name in entry:
        return entry[name]
    path = folder / name
    path.write_bytes(base64.b64decode(entry[f"{name}-data"]))
    return str(path)


@dataclass
class Rights:
    """Since when alice may not see a namespace; none while she may."""

    revoked: dict[str, float] = field(default_factory=dict)
    # Earlier times without the right: from and to.
    before: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def may_show(self, namespace: str, at: float) -> bool:
        """Whether a page may show a namespace at a time."""
        since = self.revoked.get(namespace)
        if since is not None and at > since + GRACE:
            return False
        spans = self.before.get(namespace, [])
        return not any(start + GRACE < at < end for start, end in spans)


def names() -> list[str]:
    return [f"flip-{number}" for number in range(NAMESPACES)]


def binding(namespace: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "alice", "namespace": namespace},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": OWNERS,
        },
        "subjects": [
            {
                "kind": "User",
                "name": "alice@acme.io",
                "apiGroup": "rbac.authorization.k8s.io",
            }
        ],
    }


@pytest.fixture
def api(cluster: Cluster, tmp_path: Path, persons: str) -> Iterator[Api]:
    api = Api(cluster, tmp_path)
    for name in names():
        api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        claim = {
            "apiVersion": "platform.acme.io/v1alpha1",
            "kind": "GpuDevWorkspaceClaim",
            "metadata": {"name": "mine", "namespace": name},
            "spec": {"parameters": {"owner": "alice"}},
        }
        kind = CLAIMS.split(".")[0]
        api.ask("POST", f"{GROUP}/namespaces/{name}/{kind}", claim)
        api.ask("POST", f"{RBAC}/namespaces/{name}/rolebindings", binding(name))
    yield api
    for name in names():
        api.ask("DELETE", f"/api/v1/namespaces/{name}")


def test_no_frame_shows_what_was_refused_for_more_than_5_s(
    api: Api, persons: str, places: Places
) -> None:
    print(f"SEED={SEED}")
    alice = signed_in(persons, places, "alice")
    rights, end = Rights(), time.monotonic() + SECONDS
    threads = [
        threading.Thread(target=flip, args=(api, rights, end)),
        threading.Thread(target=change, args=(api, end)),
    ]
    for thread in threads:
        thread.start()
    shown = follow(alice, end + GRACE)
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    rows = [one for one in shown if not rights.may_show(*one)]
    print(f"{len(shown)} rows shown, {len(rights.before)} namespaces flipped")
    assert rows == []
    assert len(shown) > SECONDS * FLIPS
    assert len(rights.before) > NAMESPACES // 2
    # In the end the page has exactly what the API server allows.
    left = {name for name in names() if name not in rights.revoked}
    listed = {
        row["namespace"] for row in alice.get("/api/v1/workspaces").json()["items"]
    }
    assert {name for name in listed if name.startswith("flip-")} == left


def flip(api: Api, rights: Rights, end: float) -> None:
    """Takes rights away and gives them back."""
    dice = random.Random(SEED)
    while (now := time.monotonic()) < end:
        name = dice.choice(names())
        path = f"{RBAC}/namespaces/{name}/rolebindings"
        if name in rights.revoked:
            # From before the request: the right may be there before its answer.
            since = rights.revoked.pop(name)
            rights.before.setdefault(name, []).append((since, time.monotonic()))
            api.ask("POST", path, binding(name))
        else:
            api.ask("DELETE", f"{path}/alice")
            # From after the answer: until then the API server may have allowed it.
            rights.revoked[name] = time.monotonic()
        time.sleep(max(0.0, 1 / FLIPS - (time.monotonic() - now)))


def change(api: Api, end: float) -> None:
    """Changes claims, so that there is something to see."""
    dice = random.Random(SEED + 1)
    kind = CLAIMS.split(".")[0]
    number = 0
    while (now := time.monotonic()) < end:
        number += 1
        name = dice.choice(names())
        path = f"{GROUP}/namespaces/{name}/{kind}/mine/status"
        patch = {"status": {"message": f"change {number}"}}
        headers = {"Content-Type": "application/merge-patch+json"}
        api.ask("PATCH", path, patch, **headers)
        time.sleep(max(0.0, 1 / CHANGES - (time.monotonic() - now)))


def follow(alice: Browser, end: float) -> list[tuple[str, float]]:
    """Follows the stream as a page does. Returns each row that was shown, with its time."""
    shown: list[tuple[str, float]] = []

    def listed() -> int:
        answer = alice.get("/api/v1/workspaces").json()
        at = time.monotonic()
        shown.extend((row["namespace"], at) for row in answer["items"])
        version: int = answer["version"]
        return version

    while time.monotonic() < end:
        with alice.stream(listed()) as page:
            taken = 0
            is_reset = False
            while not is_reset and not page.is_over and time.monotonic() < end:
                while taken < len(page.messages):
                    kind, data = page.messages[taken]
                    at = page.times[taken]
                    taken += 1
                    if kind == "put":
                        shown.append((data["namespace"], at))
                    is_reset = is_reset or kind == "reset"
                time.sleep(0.01)
    return [one for one in shown if one[0].startswith("flip-")]
