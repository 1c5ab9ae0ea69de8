"""An expression of the platform gives a person the name that the API server gives them."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests

from cluster import Cluster
from conftest import EXPRESSIONS
from hostile import Provider, comes_back
from people import Browser
from processes import port, until
from stage import Places
from thief import Thief

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}

# The claims of tokens. Each name says what is special in the token.
CLAIMS: dict[str, dict[str, Any]] = {
    "plain": {"sub": "Alice", "level": 3},
    "with roles": {"sub": "bob", "level": 3, "roles": ["a", "B", "a"]},
    "with one role as a text": {"sub": "bob", "level": 3, "roles": "a"},
    "with an empty role": {"sub": "bob", "level": 3, "roles": ["", "a"]},
    "with no roles": {"sub": "bob", "level": 3, "roles": []},
    "with roles that are null": {"sub": "bob", "level": 3, "roles": None},
    "with a role that is a number": {"sub": "bob", "level": 3, "roles": [1]},
    "with a name that is a number": {"sub": 7, "level": 3},
    "with letters that are not ASCII": {"sub": "ÄRGER", "level": 3},
    "with a tenant": {"sub": "bob", "level": 3, "tenant": {"id": "T-1", "name": "x"}},
    "with a tenant without an id": {"sub": "bob", "level": 3, "tenant": {"name": "x"}},
    "with a tenant that is a text": {"sub": "bob", "level": 3, "tenant": "T-1"},
    "with a level that is too low": {"sub": "bob", "level": 1},
    "with a level between": {"sub": "bob", "level": 2.5},
    "with a level just enough": {"sub": "bob", "level": 2},
    "with a level that is a text": {"sub": "bob", "level": "3"},
    "without a level": {"sub": "bob"},
    "with a level that is null": {"sub": "bob", "level": None},
    "who is banned": {"sub": "bob", "level": 3, "roles": ["banned"]},
    "of a contractor": {"sub": "ext-bob", "level": 3},
    "of a contractor with an end": {
        "sub": "ext-bob",
        "level": 3,
        "until": "2030-01-01",
    },
}


def signed(provider: Provider, nonce: str, claims: dict[str, Any]) -> str:
    honest = provider.claims(nonce, aud=EXPRESSIONS, email=None)
    return provider.key.token({**honest, **claims})


def asks(cluster: Cluster, token: str) -> requests.Response:
    """Whose token it is for the API server."""
    config = json.loads(cluster.kubeconfig.read_text())
    thief = Thief(config["clusters"][0]["cluster"]["server"], token)
    return thief.asks("POST", REVIEWS, body=REVIEW)


@pytest.fixture(scope="module")
def address(
    places: Places,
    expressions: Provider,
    authentication: Any,
    cluster: Cluster,
    start: Callable[..., Any],
) -> Iterator[str]:
    honest = signed(expressions, "x", CLAIMS["plain"])
    until("the API server to know the provider", lambda: asks(cluster, honest).ok)
    number = port()
    secret = str(places.folder / "client-secret")
    client = {"id": EXPRESSIONS, "secretFile": secret}
    everything = {"include": ["*"]}
    with start(authentication, number, "expressions", client=client, groups=everything):
        yield f"https://localhost:{number}"


@pytest.mark.parametrize("claims", CLAIMS.values(), ids=CLAIMS.keys())
def test_the_portal_and_the_api_server_agree(
    address: str,
    places: Places,
    expressions: Provider,
    cluster: Cluster,
    claims: dict[str, Any],
) -> None:
    answer = asks(cluster, signed(expressions, "x", claims))
    browser = Browser(address, places.certificates.authority)
    back = comes_back(
        browser, expressions, lambda nonce: signed(expressions, nonce, claims)
    )
    if answer.status_code == 401:
        assert back.status_code == 403, back.text
        return
    assert back.status_code == 303, back.text
    user = answer.json()["status"]["userInfo"]
    me = browser.get("/api/v1/me").json()
    assert me["user"] == user["username"]
    known = set(user.get("groups", [])) - {"system:authenticated"}
    assert set(me["groups"]) == known
