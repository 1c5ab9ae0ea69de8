"""A portal that acts as the persons themselves: they see and do what they do with kubectl."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from environment.cluster import Cluster
from environment.waiting import until
from page import Person, signs_in
from people import Browser
from portal.conftest import for_users
from portal.installation import Installation
from thief import Thief

SignedIn = Callable[[str], Browser]
TEAM = "team-portal"
OWNERS = "gpu-workspaces-owner"
PERSONS = "constrained-impersonation-of-persons"
ACCOUNTS = "constrained-impersonation"


@pytest.fixture(scope="module", autouse=True)
def persons(cluster: Cluster, portal: Installation) -> Iterator[None]:
    """Crossplane binds alice and bob in their own namespaces. They share one, and the platform team
    has all."""
    portal.remove(ACCOUNTS)
    portal.apply(PERSONS)
    portal.configure("Person")
    for_users(cluster, "Direct")
    cluster.create_namespace(TEAM)
    bind(cluster, "vision", "--group=acme:vision", "-n", TEAM)
    role = f"--clusterrole={OWNERS}"
    cluster.kubectl(
        *("create", "clusterrolebinding", "platform", role, "--group=acme:platform")
    )
    for name in ("alice", "bob"):
        until(
            f"the rights of {name}",
            lambda name=name: cluster.may(
                f"{name}@acme.io",
                *("create", "gpudevworkspaceclaims", "-n", f"dev-{name}"),
            ),
            120,
        )
    portal.restart()
    yield
    cluster.kubectl("delete", "clusterrolebinding", "platform")
    cluster.delete_namespace(TEAM)
    for_users(cluster, "Bastion")
    portal.remove(PERSONS)
    portal.apply(ACCOUNTS)
    portal.configure("Account")
    portal.restart()


@pytest.fixture(autouse=True)
def no_claims_of_the_team(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.delete_claims(TEAM)


def bind(cluster: Cluster, name: str, *words: str) -> None:
    role = f"--clusterrole={OWNERS}"
    cluster.kubectl("create", "rolebinding", name, role, *words)


def seen(browser: Browser) -> set[str]:
    rows = browser.get("/api/v1/workspaces").json()["items"]
    return {f"{row['namespace']}/{row['name']}" for row in rows}


def make(browser: Browser, name: str, namespace: str) -> str:
    """Makes a workspace. Returns the id of the request."""
    owner = {"owner": "alice"}
    body = {"name": name, "namespace": namespace, "parameters": owner}
    made = browser.writes("POST", "/api/v1/workspaces", body)
    assert made.status_code == 201, made.text
    return made.headers["X-Request-Id"]


def test_people_see_what_their_rights_allow_and_the_platform_team_sees_all(
    signed_in: SignedIn,
) -> None:
    alice, bob, carol = (signed_in(name) for name in ("alice", "bob", "carol"))
    make(alice, "mine", "dev-alice")
    make(alice, "shared", TEAM)
    assert seen(alice) == seen(carol) == {"dev-alice/mine", f"{TEAM}/shared"}
    assert seen(bob) == {f"{TEAM}/shared"}
    theirs = {"name": "planted", "namespace": "dev-alice"}
    refused = bob.writes("POST", "/api/v1/workspaces", theirs)
    assert refused.status_code == 403 and "bob@acme.io" in refused.json()["detail"]
    stop = "/api/v1/workspaces/dev-alice/mine/stop"
    assert bob.writes("POST", stop).status_code == 404
    assert carol.writes("POST", stop).status_code == 202


def test_each_write_is_the_persons_in_the_clusters_audit_log(
    signed_in: SignedIn, portal: Installation
) -> None:
    alice = signed_in("alice")
    request = make(alice, "written", "dev-alice")
    (record,) = until("the audit log", lambda: portal.recorded(request))
    assert record["verb"] == "create"
    impersonated = record["impersonatedUser"]
    assert impersonated["username"] == "alice@acme.io"
    assert "acme:vision" in impersonated["groups"]


def test_withdrawn_rights_take_the_rows_from_an_open_page_within_5_s(
    signed_in: SignedIn, person: Person, cluster: Cluster
) -> None:
    make(signed_in("alice"), "shared", TEAM)
    page = person.opens()
    signs_in(page, "bob")
    row = page.get_by_role("row", name="shared")
    expect(row).to_be_visible()
    page.evaluate("window.isTheSame = true")
    cluster.kubectl("delete", "rolebinding", "vision", "-n", TEAM)
    try:
        expect(row).to_have_count(0, timeout=5000)
    finally:
        bind(cluster, "vision", "--group=acme:vision", "-n", TEAM)
    expect(row).to_be_visible(timeout=5000)
    assert page.evaluate("window.isTheSame")


@pytest.mark.parametrize(
    "who",
    [
        {},
        {"Impersonate-User": "admin", "Impersonate-Group": "system:masters"},
        {"Impersonate-User": "carol@acme.io", "Impersonate-Group": "acme:platform"},
        {"Impersonate-User": "system:node:node", "Impersonate-Group": "system:nodes"},
    ],
    ids=["itself", "a cluster administrator", "the platform team", "the node"],
)
def test_as_whomever_the_portals_token_opens_nothing_but_workspaces(
    thief: Thief, portal: Installation, who: dict[str, str]
) -> None:
    pod = portal.ready()[0]["metadata"]["name"]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    for method, path in (
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/namespaces/crossplane-system/secrets"),
        ("GET", "/api/v1/nodes"),
        ("POST", f"/api/v1/namespaces/gpu-portal/pods/{pod}/exec?command=id"),
        ("POST", f"{rbac}/clusterrolebindings"),
        ("DELETE", f"{rbac}/clusterroles/cluster-admin"),
        ("DELETE", "/apis/platform.acme.io/v1alpha1/devusers/bob"),
    ):
        answer = thief.asks(method, path, who, {} if method == "POST" else None)
        assert answer.status_code == 403, (method, path, answer.text)
