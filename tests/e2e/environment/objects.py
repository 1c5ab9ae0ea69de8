"""Objects at the API server, over connections that stay open.

Tests read five times a second, and change objects many times. kubectl would start a
process for each, which would keep two processors busy.
"""

import base64
import json
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import urllib3

Object = dict[str, Any]

# All resources of all groups in one answer ("Aggregated discovery", Kubernetes).
_DISCOVERY = {
    "Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
}


# `kubectl apply` is this field manager. It keeps the applied object in this annotation.
_APPLY = "kubectl-client-side-apply"
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Refused(Exception):
    """The error message of the API server, or of kubectl."""


class Exists(Refused):
    """There is an object of this name."""


class Missing(Refused):
    """There is no object of this name."""


# What tests tell apart, by the reasons of the API server.
_REFUSALS = {"AlreadyExists": Exists, "NotFound": Missing}


@dataclass(frozen=True)
class _Resource:
    """The URL path of the objects of a kind."""

    root: str
    plural: str
    is_namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        parts = [self.root]
        if self.is_namespaced:
            parts += ["namespaces", quote(namespace)]
        parts += [self.plural, quote(name)]
        return "/".join(part for part in parts if part)


class Objects:
    def __init__(self, server: str, context: ssl.SSLContext) -> None:
        self._server = server
        self._http = urllib3.PoolManager(ssl_context=context, timeout=30)
        self._resources: dict[str, _Resource] = {}

    @classmethod
    def of_kubeconfig(cls) -> "Objects":
        """Reads the same cluster, as the same user, as kubectl."""
        view = ["kubectl", "config", "view", "--minify", "--flatten", "-o", "json"]
        shown = subprocess.run([*view, "--raw"], capture_output=True, check=True)
        config = json.loads(shown.stdout)
        cluster = config["clusters"][0]["cluster"]
        user = config["users"][0]["user"]
        decoded = base64.b64decode
        authority = decoded(cluster["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=authority)
        # Python's ssl module reads a certificate and its key only from a file.
        with tempfile.NamedTemporaryFile() as file:
            file.write(decoded(user["client-certificate-data"]))
            file.write(decoded(user["client-key-data"]))
            file.flush()
            context.load_cert_chain(file.name)
        return cls(cluster["server"], context)

    def get(self, kind: str, name: str, namespace: str) -> Object | None:
        """An object, or None if it does not exist.

        `kind` is any name that kubectl takes: `pods`, `pvc`, `spotpools.gpu.acme.io`.
        """
        return self._read(self._resource(kind).path(namespace, name))

    def all(
        self, kind: str, namespace: str, labels: str = "", fields: str = ""
    ) -> list[Object]:
        """The objects of a namespace that match both selectors."""
        selectors = {"labelSelector": labels, "fieldSelector": fields}
        listed = self._read(self._resource(kind).path(namespace), selectors)
        if listed is None:
            raise Refused(f"the API server serves no {kind} any more")
        # The API server's lists have items without apiVersion and kind. kubectl adds
        # them, so the tests expect them.
        of = {
            "apiVersion": listed["apiVersion"],
            "kind": listed["kind"].removesuffix("List"),
        }
        return [of | item for item in listed["items"]]

    def create(self, document: Object) -> None:
        """Creates an object, as `kubectl apply` does with one that does not exist."""
        group, _, version = document["apiVersion"].rpartition("/")
        resource = self._resource(kind_of(document))
        resource = replace(resource, root=_root(group, version))
        metadata = document["metadata"]
        annotations = metadata.get("annotations") or {}
        applied = json.dumps(document, separators=(",", ":")) + "\n"
        created = document | {
            "metadata": metadata | {"annotations": annotations | {_APPLIED: applied}}
        }
        path = resource.path(metadata.get("namespace", "default"))
        settings = f"?fieldManager={_APPLY}&fieldValidation=Strict"
        self._change("POST", path + settings, created)

    def delete(
        self, kind: str, name: str, namespace: str, cascade: str = "background"
    ) -> None:
        """Begins to delete an object. `cascade` is as for `kubectl delete`."""
        options = {"propagationPolicy": cascade.capitalize()}
        self._change("DELETE", self._resource(kind).path(namespace, name), options)

    def merge(self, kind: str, name: str, namespace: str, patch: Object) -> None:
        """Changes fields, and removes those that are None (RFC 7396)."""
        path = self._resource(kind).path(namespace, name)
        self._change("PATCH", path, patch, "application/merge-patch+json")

    def text(self, path: str) -> str:
        """The answer at a path of the API server."""
        return self._answer("GET", path).decode()

    def _change(
        self, method: str, path: str, body: Object, type_: str = "application/json"
    ) -> None:
        headers = {"Content-Type": type_}
        self._answer(method, path, body=json.dumps(body), headers=headers)

    def _answer(self, method: str, path: str, **request: Any) -> bytes:
        try:
            answer = self._http.request(method, self._server + path, **request)
        except urllib3.exceptions.HTTPError as error:
            raise Refused(f"{path}: {error}") from error
        if answer.status < 300:
            return answer.data
        try:
            status: Object = json.loads(answer.data)
        except ValueError:
            # The API server passes on the answer of a pod.
            status = {"message": answer.data.decode(errors="replace")}
        reason = status.get("reason", answer.status)
        refusal = _REFUSALS.get(reason, Refused)
        raise refusal(f"Error from server ({reason}): {status.get('message', status)}")

    def _resource(self, kind: str) -> _Resource:
        if kind not in self._resources:
            # The kind's definition may be newer than the last discovery.
            self._resources = self._discover()
        if kind not in self._resources:
            raise Refused(f'the API server does not have a resource type "{kind}"')
        return self._resources[kind]

    def _discover(self) -> dict[str, _Resource]:
        """The resource of each name that kubectl takes. If several groups have a name,
        the first group counts."""
        found: dict[str, _Resource] = {}
        for group, version, served in self._served():
            is_namespaced = served["scope"] == "Namespaced"
            root = _root(group, version)
            resource = _Resource(root, served["resource"], is_namespaced)
            names = [served["resource"], served["singularResource"]]
            for name in [*names, *served.get("shortNames", [])]:
                found.setdefault(name, resource)
                found.setdefault(f"{name}.{group}", resource)
        return found

    def _served(self) -> Iterator[tuple[str, str, Object]]:
        """The group, the version and the description of each resource. The preferred
        version of a group comes first. It need not have all resources."""
        for root in ("/api", "/apis"):
            for group in (self._read(root, headers=_DISCOVERY) or {})["items"]:
                for version in group["versions"]:
                    for served in version["resources"]:
                        name = group["metadata"].get("name", "")
                        yield name, version["version"], served

    def _read(
        self,
        path: str,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Object | None:
        given = {key: value for key, value in (query or {}).items() if value}
        answer = self._http.request(
            "GET", self._server + path, fields=given, headers=headers
        )
        if answer.status == 404:
            return None
        body: Object = json.loads(answer.data)
        if answer.status != 200:
            raise Refused(f"{path}: {body.get('message', body)}")
        return body


def kind_of(named: Object) -> str:
    """The kind of an object or of a reference, with its group, as kubectl takes it."""
    group = named["apiVersion"].rpartition("/")[0]
    kind: str = named["kind"].lower()
    return f"{kind}.{group}" if group else kind


def _root(group: str, version: str) -> str:
    """The URL path of a version. The core group has no name."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"
