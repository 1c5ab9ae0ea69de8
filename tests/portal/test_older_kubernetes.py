"""A portal on a Kubernetes without constrained impersonation: before 1.36."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import stage
from cluster import Cluster
from conftest import signed_in
from people import Browser
from stage import Places
from test_rights import ALICE, CLAIMS, claim
from thief import Thief


@pytest.fixture(scope="module")
def older(places: Places, authentication: Path) -> Iterator[Cluster]:
    folder = places.folder / "older"
    folder.mkdir()
    with stage.api_server(
        replace(places, folder=folder),
        authentication,
        impersonation="impersonation",
        feature_gates="ConstrainedImpersonation=false",
    ) as cluster:
        cluster.people({name: f"{name}@acme.io" for name in ("alice", "bob")})
        yield cluster


@pytest.fixture(scope="module")
def token(older: Cluster) -> str:
    return stage.own_token(older)


@pytest.fixture(scope="module")
def address(
    older: Cluster, token: str, places: Places, dex: str, authentication: Path
) -> Iterator[str]:
    here = replace(places, folder=places.folder / "older")
    start = stage.portals(older, token, here)
    # The provider of identities sends people back to this port only.
    with start(authentication, places.persons_port, "portal"):
        yield f"https://localhost:{places.persons_port}"


@pytest.fixture
def alice(address: str, places: Places) -> Browser:
    return signed_in(address, places, "alice")


@pytest.fixture
def thief(older: Cluster, token: str) -> Thief:
    config = json.loads(older.kubeconfig.read_text())
    return Thief(config["clusters"][0]["cluster"]["server"], token)


def test_a_person_makes_stops_and_deletes_a_workspace(alice: Browser) -> None:
    made = alice.writes("POST", "/api/v1/workspaces", {"name": "mine"})
    assert made.status_code == 201, made.text
    path = "/api/v1/workspaces/dev-alice/mine"
    assert alice.writes("POST", f"{path}/stop").status_code == 202
    assert alice.writes("DELETE", path).status_code == 202


def test_a_thief_of_the_portals_token_is_owners_only(thief: Thief) -> None:
    path = CLAIMS.format("dev-alice")
    assert thief.asks("POST", path, ALICE, claim("x", "dev-alice")).status_code == 201
    assert thief.asks("DELETE", f"{path}/x", ALICE).status_code == 200
    for who in (
        {"Impersonate-User": "admin", "Impersonate-Group": "system:masters"},
        {"Impersonate-User": "alice@acme.io"},
        {"Impersonate-User": "system:serviceaccount:kube-system:default"},
        {**ALICE, "Impersonate-Group": "system:masters"},
    ):
        assert thief.asks("GET", path, who).status_code == 403, who
    # The account's own role bounds what a thief does as the owner.
    for method, path in (
        ("GET", "/api/v1/namespaces/dev-alice/secrets"),
        ("POST", "/api/v1/namespaces/dev-alice/pods"),
        ("POST", "/api/v1/namespaces/dev-alice/pods/x/exec?command=id&stdout=true"),
        ("GET", "/api/v1/nodes"),
    ):
        body = {} if method == "POST" else None
        answer = thief.asks(method, path, ALICE, body)
        assert answer.status_code == 403, (method, path, answer.text)
