"""Whoever has the portal's own token has no rights but those that it needs."""

import json
from typing import Any

import pytest

from cluster import Cluster
from thief import Thief

ALICE = {"Impersonate-User": "system:serviceaccount:dev-alice:gpu-workspaces.owner"}
CLAIMS = "/apis/platform.acme.io/v1alpha1/namespaces/{}/gpudevworkspaceclaims"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
USERS = "/apis/platform.acme.io/v1alpha1/devusers"


@pytest.fixture
def thief(cluster: Cluster, token: str) -> Thief:
    config = json.loads(cluster.kubeconfig.read_text())
    return Thief(config["clusters"][0]["cluster"]["server"], token)


def claim(name: str, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "platform.acme.io/v1alpha1",
        "kind": "GpuDevWorkspaceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"parameters": {"owner": "alice"}},
    }


def test_what_the_portal_needs_is_allowed(thief: Thief) -> None:
    """The refusals mean something only if this passes."""
    everywhere = "/apis/platform.acme.io/v1alpha1/gpudevworkspaceclaims"
    assert thief.asks("GET", everywhere).status_code == 200
    sessions = "/api/v1/namespaces/gpu-portal/secrets"
    assert thief.asks("GET", sessions).status_code == 200
    path = CLAIMS.format("dev-alice")
    made = thief.asks("POST", path, ALICE, claim("mine", "dev-alice"))
    assert made.status_code == 201, made.text
    assert thief.asks("DELETE", f"{path}/mine", ALICE).status_code == 200


@pytest.mark.parametrize("who", [{}, ALICE], ids=["as itself", "as alice"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/namespaces/dev-alice/secrets"),
        ("GET", "/api/v1/namespaces/kube-system/secrets"),
        ("GET", "/api/v1/nodes"),
        ("GET", "/api/v1/namespaces/kube-system/pods"),
        ("POST", "/api/v1/namespaces/dev-alice/pods"),
        ("POST", "/api/v1/namespaces/dev-alice/pods/x/exec?command=id&stdout=true"),
        ("POST", "/api/v1/namespaces/dev-alice/pods/x/portforward?ports=22"),
        ("POST", "/api/v1/namespaces/kube-system/serviceaccounts/default/token"),
        ("POST", "/api/v1/namespaces"),
        ("POST", f"{RBAC}/clusterroles"),
        ("POST", f"{RBAC}/clusterrolebindings"),
        ("POST", f"{RBAC}/namespaces/dev-alice/rolebindings"),
        ("DELETE", f"{RBAC}/namespaces/dev-alice/rolebindings/gpu-workspaces.owner"),
        ("POST", CLAIMS.format("dev-bob")),
        ("DELETE", CLAIMS.format("dev-bob") + "/x"),
        ("DELETE", f"{USERS}/alice"),
        ("PATCH", f"{USERS}/alice"),
    ],
)
def test_what_the_portal_has_no_need_of_is_refused(
    thief: Thief, who: dict[str, str], method: str, path: str
) -> None:
    headers = (
        {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
    )
    body = {"spec": {}} if method in ("POST", "PATCH") else None
    answer = thief.asks(method, path, {**who, **headers}, body)
    assert answer.status_code == 403, answer.text


def test_the_portal_itself_changes_no_claim(thief: Thief) -> None:
    path = CLAIMS.format("dev-alice")
    made = thief.asks("POST", path, body=claim("mine", "dev-alice"))
    assert made.status_code == 403
    assert thief.asks("DELETE", f"{path}/mine").status_code == 403


@pytest.mark.parametrize(
    "who",
    [
        {"Impersonate-User": "system:admin"},
        {"Impersonate-User": "alice@acme.io"},
        {"Impersonate-User": "kubernetes-admin", "Impersonate-Group": "system:masters"},
        {**ALICE, "Impersonate-Group": "system:masters"},
        {**ALICE, "Impersonate-Uid": "0"},
        {**ALICE, "Impersonate-Extra-scopes": "view"},
        {"Impersonate-User": "system:serviceaccount:kube-system:default"},
        {"Impersonate-User": "system:serviceaccount:dev-alice:default"},
        {"Impersonate-User": "system:node:node"},
    ],
    ids=lambda who: " ".join(who.values()),
)
def test_the_portal_becomes_nobody_but_owners(
    thief: Thief, who: dict[str, str]
) -> None:
    answer = thief.asks("GET", CLAIMS.format("dev-alice"), who)
    assert answer.status_code == 403, answer.text
