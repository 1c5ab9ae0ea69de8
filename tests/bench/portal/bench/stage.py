"""The API server with a provider of identities, people who are signed in, claims, and both servers."""

import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import stage
import yaml
from cluster import ROOT, Cluster
from people import SESSION, Browser
from processes import listens, port, running, until
from stage import CLIENT, Places, Start

from bench import load, node

BFF = Path(__file__).parents[1] / "bff"
# The person with all the claims that are read, and how many browsers they have: the portal lets a
# session read fifty times a second.
TEAM = "team"
READERS = 250
# How many browsers each of the others has: so many see each of their changes.
BROWSERS_EACH = 10
# How many sign in at the same time.
AT_ONCE = 4
# As whom the portal asks the API server.
PORTAL_USER = f"system:serviceaccount:{CLIENT}:{CLIENT}"
BFF_USER = f"system:serviceaccount:dev-{TEAM}:bff"

Started = AbstractContextManager[subprocess.Popen[str]]


@dataclass
class Stage:
    places: Places
    cluster: Cluster
    authentication: Path
    start: Start
    # Who has one claim each, which changes.
    people: list[str]

    @property
    def folder(self) -> Path:
        return self.places.folder

    @property
    def authority(self) -> Path:
        return self.places.certificates.authority

    @property
    def readers(self) -> Path:
        """The sessions of the person with many claims."""
        return self.folder / "readers.json"

    @property
    def watchers(self) -> Path:
        """The sessions of all others."""
        return self.folder / "watchers.json"

    def portal(self) -> Started:
        """The portal, until the block ends."""
        places = self.places
        return self.start(
            self.authentication, places.portal_port, "portal", places.metrics_port
        )

    @contextmanager
    def bff(self) -> Iterator[str]:
        """The backend beside the portal, until the block ends. Returns its address."""
        token = self.cluster.kubectl("create", "token", "bff", "-n", f"dev-{TEAM}")
        config = self.folder / "bff-kubeconfig"
        number = port()
        environment = {
            **os.environ,
            "KUBECONFIG": str(stage.with_token(self.cluster, token.strip(), config)),
            "NAMESPACE": f"dev-{TEAM}",
            "NODE_ENV": "production",
            "PORT": str(number),
        }
        words = [node.NODE, BFF / "server.js"]
        log = self.folder / "bff.log"
        with running(words, log, env=environment) as process:

            def serves() -> bool:
                assert process.poll() is None, log.read_text()
                return listens(number)

            until("the backend", serves)
            yield f"http://127.0.0.1:{number}/api/workspaces"

    def claims(self, *namespaces: str, first: int = 0, count: int = 1) -> None:
        """Makes claims in each namespace."""
        template = self.folder / "claim.json"
        template.write_text(json.dumps(claim()))
        load.ran(
            *("claims", "--kubeconfig", self.cluster.kubeconfig),
            *("--template", template, "--first", str(first), "--count", str(count)),
            *namespaces,
        )

    def sign_in(self) -> None:
        """Everybody signs in, in each of their browsers."""
        all_ = {
            self.readers: [TEAM] * READERS,
            self.watchers: [name for name in self.people for _ in range(BROWSERS_EACH)],
        }
        with self.portal(), ThreadPoolExecutor(AT_ONCE) as pool:
            for path, names in all_.items():
                sessions = list(pool.map(self.session, names))
                path.write_text(json.dumps(sessions))

    def session(self, name: str) -> dict[str, str]:
        """A session of a person in a browser of their own."""
        browser = Browser(self.places.portal, self.authority)
        browser.sign_in(f"{name}@acme.io")
        cookies = {cookie.name: cookie.value or "" for cookie in browser.http.cookies}
        browser.http.close()
        token = cookies["XSRF-TOKEN"]
        value = f"{SESSION}={cookies[SESSION]}; XSRF-TOKEN={token}"
        return {"namespace": f"dev-{name}", "cookie": value, "token": token}


@contextmanager
def built(folder: Path, people: int) -> Iterator[Stage]:
    """The stage, until the block ends."""
    places = Places.inside(folder)
    names = [f"person-{number:03}" for number in range(people)]
    authentication = stage.written(places, places.issuer, "authentication.yaml")
    groups = {name: ["vision"] for name in [TEAM, *names]}
    with ExitStack() as stack:
        stack.enter_context(stage.provider_of_identities(places, groups))
        cluster = stack.enter_context(stage.api_server(places, authentication))
        cluster.people({name: f"{name}@acme.io" for name in groups})
        cluster.apply(*rights_of_bff())
        token = stage.own_token(cluster)
        start = stage.portals(cluster, token, places, shows=lambda _: None)
        yield Stage(places, cluster, authentication, start, names)


def rights_of_bff() -> list[dict[str, Any]]:
    """A service account that may do with claims what the endpoints do."""
    named = {"name": "bff", "namespace": f"dev-{TEAM}"}
    group = "rbac.authorization.k8s.io"
    rule = {
        "apiGroups": ["platform.acme.io"],
        "resources": ["gpudevworkspaceclaims"],
        "verbs": ["list", "create", "delete"],
    }
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named},
        {
            "apiVersion": f"{group}/v1",
            "kind": "Role",
            "metadata": named,
            "rules": [rule],
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": named,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "bff"},
            "subjects": [{"kind": "ServiceAccount", **named}],
        },
    ]


def claim() -> dict[str, Any]:
    """A claim with what the function writes about a workspace that runs, in two of its test cases."""
    status: dict[str, Any] = {}
    conditions: dict[str, Any] = {}
    for case in ("budget-extension-refused", "lifecycle-idle"):
        path = ROOT / f"function/tests/cases/{case}/response.yaml"
        # Times stay text.
        response = yaml.load(path.read_text(), Loader=yaml.BaseLoader)
        status |= typed(response["desired"]["composite"]["resource"]["status"])
        for one in response["conditions"]:
            conditions[one["type"]] = {
                "type": one["type"],
                "status": one["status"].removeprefix("STATUS_CONDITION_").title(),
                "reason": one["reason"],
                "message": one.get("message", ""),
                "lastTransitionTime": "2026-11-20T10:00:45Z",
            }
    parameters = {
        "instanceType": "g4dn.xlarge",
        "region": "us-east-1",
        "owner": "alice",
        "opencvVersion": "4.8.0",
        "ssh": {"allowedCidrs": ["203.0.113.0/24"]},
    }
    return {
        "spec": {"parameters": parameters},
        "status": {**status, "conditions": list(conditions.values())},
    }


def typed(value: Any) -> Any:
    """The numbers and truths of a YAML file whose texts were all left as they are."""
    if isinstance(value, dict):
        return {key: typed(one) for key, one in value.items()}
    if isinstance(value, list):
        return [typed(one) for one in value]
    found = yaml.safe_load(value)
    return found if isinstance(found, (bool, int, float)) else value
