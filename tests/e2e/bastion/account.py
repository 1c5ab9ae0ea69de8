"""An account of the cluster by its token alone, and what the API server lets it do."""

import base64
import json
import ssl
from dataclasses import dataclass, field
from typing import Any

import urllib3

from environment.cluster import Cluster

# How each verb asks ("Request verbs", Kubernetes). Nothing is stored, and a watch ends.
VERBS: dict[str, tuple[str, str]] = {
    "get": ("GET", ""),
    "list": ("GET", ""),
    "watch": ("GET", "?watch=1&timeoutSeconds=1"),
    "create": ("POST", "?dryRun=All"),
    "update": ("PUT", "?dryRun=All"),
    "patch": ("PATCH", "?dryRun=All"),
    "delete": ("DELETE", "?dryRun=All"),
    "deletecollection": ("DELETE", "?dryRun=All"),
}
OF_COLLECTIONS = ("list", "watch", "create", "deletecollection")
# A name that no object has. An account with the right is told so.
NOTHING = "no-such-object"


@dataclass(frozen=True)
class Resource:
    """Objects of a kind, or a subresource of them."""

    plural: str
    group: str = ""
    version: str = "v1"
    is_namespaced: bool = True
    name: str = NOTHING
    subresource: str = ""

    def __str__(self) -> str:
        parts = [self.group, self.plural, self.subresource]
        named = "" if self.name == NOTHING else f" [{self.name}]"
        return "/".join(part for part in parts if part) + named

    def path(self, verb: str, namespace: str) -> str:
        root = f"/apis/{self.group}" if self.group else "/api"
        parts = [root, self.version]
        if self.is_namespaced:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if self.subresource or verb not in OF_COLLECTIONS:
            parts.append(self.name)
        parts.append(self.subresource)
        return "/".join(part for part in parts if part)

    def verbs(self) -> list[str]:
        """What can be asked: a subresource is no collection, except for `create`."""
        if not self.subresource:
            return list(VERBS)
        return ["get", "create", "update", "patch", "delete"]


# The name of these tests in the API server's audit log.
AGENT = "tests-with-the-bastions-token"


@dataclass(frozen=True)
class Answer:
    status: int
    message: str

    @property
    def is_refused(self) -> bool:
        """Whether the account has no right to it. What it has a right to may fail for
        other reasons, and a missing object is one."""
        return self.status == 403 and " cannot " in self.message


@dataclass
class Account:
    """Who has a token. `headers` may ask to be somebody else."""

    server: str
    token: str
    http: urllib3.PoolManager = field(repr=False)

    @classmethod
    def of(cls, cluster: Cluster, name: str, namespace: str) -> "Account":
        """A service account. The kubeconfig's own certificate is not used: the API
        server would take it before the token."""
        view = ("config", "view", "--minify", "--flatten", "--raw", "-o", "json")
        config = json.loads(cluster.kubectl(*view))["clusters"][0]["cluster"]
        authority = base64.b64decode(config["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=authority)
        token = cluster.kubectl("create", "token", name, "-n", namespace).strip()
        http = urllib3.PoolManager(ssl_context=context, timeout=30)
        return cls(config["server"], token, http)

    def ask(
        self,
        method: str,
        path: str,
        headers: dict[str, str] | None = None,
        body: Any = None,
    ) -> Answer:
        own = {"Authorization": f"Bearer {self.token}", "User-Agent": AGENT}
        given = {**own, **(headers or {})}
        if method in ("POST", "PUT"):
            given["Content-Type"] = "application/json"
        if method == "PATCH":
            given["Content-Type"] = "application/merge-patch+json"
        answered = self.http.request(
            method,
            self.server + path,
            headers=given,
            body=None if method == "GET" else json.dumps(body or {}),
        )
        text = answered.data.decode(errors="replace")
        try:
            message = str(json.loads(text).get("message", ""))
        except ValueError:
            message = text
        return Answer(answered.status, message)

    def does(
        self,
        verb: str,
        resource: Resource,
        namespace: str,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        method, query = VERBS[verb]
        return self.ask(method, resource.path(verb, namespace) + query, headers)

    def rights(
        self,
        resources: list[Resource],
        namespace: str,
        headers: dict[str, str] | None = None,
    ) -> dict[str, str]:
        """The verbs that the API server does not refuse, by resource."""
        found = {}
        for resource in resources:
            verbs = [
                verb
                for verb in resource.verbs()
                if not self.does(verb, resource, namespace, headers).is_refused
            ]
            if verbs:
                found[str(resource)] = " ".join(sorted(verbs))
        return found


def impersonating(user: str) -> dict[str, str]:
    """Headers that ask to be somebody else ("User impersonation", Kubernetes)."""
    return {"Impersonate-User": user}
