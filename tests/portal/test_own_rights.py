"""A portal that acts as the persons themselves: they see and do what they do with kubectl."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster import CLAIMS, ROOT, Cluster
from conftest import signed_in
from people import Browser
from processes import port, until
from stage import Places
from test_rights import claim
from thief import Thief

MANIFEST = ROOT / "portal/manifests/constrained-impersonation-of-persons.yaml"
TEAM = "team-vision"
OWNERS = "gpu-workspaces-owner"


@pytest.fixture(scope="module")
def persons(
    places: Places,
    dex: str,
    cluster: Cluster,
    authentication: Path,
    start: Callable[..., Any],
) -> Iterator[str]:
    cluster.kubectl("apply", "-f", str(MANIFEST))
    # Its workspaces are alice's. Several modules of tests have such a portal.
    labels = {"platform.acme.io/owner": "alice"}
    team = {"name": TEAM, "labels": labels}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": team})
    number = places.persons_port
    try:
        with start(authentication, number, "persons", actAs="Person"):
            yield f"https://localhost:{number}"
    finally:
        cluster.kubectl("delete", "-f", str(MANIFEST))


def bind(cluster: Cluster, name: str, *subjects: str, namespace: str = "") -> None:
    where = (
        ("rolebinding", name, "-n", namespace)
        if namespace
        else ("clusterrolebinding", name)
    )
    cluster.kubectl("create", *where, f"--clusterrole={OWNERS}", *subjects)


@pytest.fixture(scope="module", autouse=True)
def rights(cluster: Cluster, persons: str) -> Iterator[None]:
    """alice has a namespace of her own, everybody of a group shares one, and the platform team
    has all."""
    bind(cluster, "alice", "--user=alice@acme.io", namespace="dev-alice")
    bind(cluster, "vision", "--group=acme:vision", namespace=TEAM)
    bind(cluster, "platform", "--group=acme:platform")
    yield
    cluster.kubectl("delete", "rolebinding", "alice", "-n", "dev-alice")
    cluster.kubectl("delete", "clusterrolebinding", "platform")


@pytest.fixture
def alice(persons: str, places: Places) -> Browser:
    return signed_in(persons, places, "alice")


@pytest.fixture
def bob(persons: str, places: Places) -> Browser:
    return signed_in(persons, places, "bob")


@pytest.fixture
def carol(persons: str, places: Places) -> Browser:
    """Somebody of the platform team, without a DevUser."""
    return signed_in(persons, places, "carol")


def seen(browser: Browser) -> set[str]:
    rows = browser.get("/api/v1/workspaces").json()["items"]
    return {f"{row['namespace']}/{row['name']}" for row in rows}


def test_people_see_and_do_what_their_rights_allow(
    alice: Browser, bob: Browser, carol: Browser
) -> None:
    made = alice.writes("POST", "/api/v1/workspaces", {"name": "mine"})
    assert made.status_code == 201, made.text
    shared = {"name": "shared", "namespace": TEAM, "parameters": {"owner": "alice"}}
    made = alice.writes("POST", "/api/v1/workspaces", shared)
    assert made.status_code == 201, made.text
    assert seen(alice) == {"dev-alice/mine", f"{TEAM}/shared"}
    assert seen(bob) == {f"{TEAM}/shared"}
    assert seen(carol) == {"dev-alice/mine", f"{TEAM}/shared"}
    # bob may not in alice's namespace, and Kubernetes says so.
    theirs = {"name": "planted", "namespace": "dev-alice"}
    refused = bob.writes("POST", "/api/v1/workspaces", theirs)
    assert refused.status_code == 403 and "bob@acme.io" in refused.json()["detail"]
    assert (
        bob.writes("POST", "/api/v1/workspaces/dev-alice/mine/stop").status_code == 404
    )
    # Who shares a namespace may stop what is in it, and the platform team may everywhere.
    assert (
        bob.writes("POST", f"/api/v1/workspaces/{TEAM}/shared/stop").status_code == 202
    )
    assert (
        carol.writes("POST", "/api/v1/workspaces/dev-alice/mine/stop").status_code
        == 202
    )
    # carol has no namespace of her own.
    nowhere = carol.writes("POST", "/api/v1/workspaces", {"name": "x"})
    assert nowhere.status_code == 400 and "namespace" in nowhere.json()["detail"]
    assert "problem" not in {k for k, v in carol.get("/api/v1/me").json().items() if v}


def test_each_write_is_the_persons_in_the_api_servers_log(
    alice: Browser, cluster: Cluster
) -> None:
    made = alice.writes("POST", "/api/v1/workspaces", {"name": "written"})
    request = made.headers["X-Request-Id"]

    def recorded() -> list[Any]:
        return cluster.recorded(request)

    (record,) = until("the audit log", recorded)
    impersonated = record["impersonatedUser"]
    assert impersonated["username"] == "alice@acme.io"
    assert "acme:vision" in impersonated["groups"]


def test_withdrawn_rights_take_the_rows_from_an_open_page_within_5_s(
    alice: Browser, bob: Browser, cluster: Cluster
) -> None:
    shared = {"name": "shared", "namespace": TEAM, "parameters": {"owner": "alice"}}
    alice.writes("POST", "/api/v1/workspaces", shared)
    with bob.stream(bob.version()) as page:
        page.shows("session")
        cluster.kubectl("delete", "rolebinding", "vision", "-n", TEAM)
        try:
            page.shows("reset", seconds=5)
            assert seen(bob) == set()
            assert bob.get(f"/api/v1/workspaces/{TEAM}/shared").status_code == 404
        finally:
            bind(cluster, "vision", "--group=acme:vision", namespace=TEAM)
    until("the rights to be back", lambda: seen(bob) == {f"{TEAM}/shared"}, 5)
    # A right that a role loses, and not a binding.
    role = ("get", "clusterrole", OWNERS, "-o", "json")
    whole = json.loads(cluster.kubectl(*role))
    with bob.stream(bob.version()) as page:
        page.shows("session")
        cluster.kubectl("delete", "clusterrole", OWNERS)
        try:
            page.shows("reset", seconds=5)
            assert seen(bob) == set()
        finally:
            for key in ("resourceVersion", "uid", "creationTimestamp", "managedFields"):
                whole["metadata"].pop(key, None)
            cluster.apply(whole)


@pytest.mark.parametrize("resource", ["users", "groups", "serviceaccounts"])
def test_a_portal_that_may_become_everybody_does_not_run(
    cluster: Cluster, authentication: Path, start: Callable[..., Any], resource: str
) -> None:
    rule = {"apiGroups": [""], "resources": [resource], "verbs": ["impersonate"]}
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    cluster.apply({**kind, "metadata": {"name": "unbounded"}, "rules": [rule]})
    portal = "--serviceaccount=gpu-portal:gpu-portal"
    create = ("create", "clusterrolebinding", "unbounded", "--clusterrole=unbounded")
    cluster.kubectl(*create, portal)
    told = f"the portal may impersonate all {resource}"
    try:
        with pytest.raises(AssertionError, match=told):
            with start(authentication, port(), "unbounded"):
                pass
    finally:
        cluster.kubectl("delete", "clusterrolebinding", "unbounded")


SECRET = "/api/v1/namespaces/kube-system/secrets"


@pytest.mark.parametrize(
    "who",
    [
        {"Impersonate-User": "admin", "Impersonate-Group": "system:masters"},
        {"Impersonate-User": "carol@acme.io", "Impersonate-Group": "acme:platform"},
        {"Impersonate-User": "system:node:node"},
        {"Impersonate-User": "system:serviceaccount:kube-system:default"},
    ],
    ids=lambda who: " ".join(who.values()),
)
def test_whoever_has_the_portals_token_makes_and_deletes_workspaces_and_no_more(
    cluster: Cluster, token: str, who: dict[str, str]
) -> None:
    config = json.loads(cluster.kubeconfig.read_text())
    thief = Thief(config["clusters"][0]["cluster"]["server"], token)
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    for method, path in (
        ("GET", SECRET),
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/nodes"),
        ("POST", "/api/v1/namespaces"),
        ("POST", "/api/v1/namespaces/dev-alice/pods"),
        ("POST", "/api/v1/namespaces/dev-alice/pods/x/exec?command=id"),
        ("POST", f"{rbac}/clusterrolebindings"),
        ("POST", "/api/v1/namespaces/kube-system/serviceaccounts/default/token"),
        ("DELETE", "/apis/platform.acme.io/v1alpha1/devusers/alice"),
    ):
        answer = thief.asks(method, path, who, {} if method == "POST" else None)
        assert answer.status_code == 403, (method, path, answer.text)


def test_what_the_portal_needs_for_that_is_allowed(
    cluster: Cluster, token: str
) -> None:
    """The refusals mean something only if this passes."""
    config = json.loads(cluster.kubeconfig.read_text())
    thief = Thief(config["clusters"][0]["cluster"]["server"], token)
    who = {"Impersonate-User": "carol@acme.io", "Impersonate-Group": "acme:platform"}
    path = (
        f"/apis/platform.acme.io/v1alpha1/namespaces/dev-alice/{CLAIMS.split('.')[0]}"
    )
    made = thief.asks("POST", path, who, claim("mine", "dev-alice"))
    assert made.status_code == 201, made.text
    assert thief.asks("DELETE", f"{path}/mine", who).status_code == 200
