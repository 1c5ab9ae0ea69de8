"""Programs come with a person's token, which the API server reviews."""

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests

from cluster import CLAIMS, ROOT, Cluster
from people import PASSWORD
from processes import port, until
from stage import CLIENT, SECRET, Places


@pytest.fixture(scope="module")
def programs(
    places: Places,
    dex: str,
    cluster: Cluster,
    authentication: Any,
    start: Callable[..., Any],
) -> Iterator[str]:
    """A portal that lets programs in."""
    cluster.kubectl("apply", "-f", str(ROOT / "portal/manifests/bearer-tokens.yaml"))
    number = port()
    with start(authentication, number, "programs", bearerTokens=True):
        yield f"https://localhost:{number}"


@pytest.fixture(scope="module")
def hers(places: Places, dex: str) -> str:
    """alice's token, as a program of hers gets one."""
    answer = http(places).post(
        f"{places.issuer}/token",
        auth=(CLIENT, SECRET),
        data={
            "grant_type": "password",
            "username": "alice@acme.io",
            "password": PASSWORD,
            "scope": "openid email groups",
        },
    )
    assert answer.ok, answer.text
    found: str = answer.json()["id_token"]
    return found


def http(places: Places, token: str = "") -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.verify = str(places.certificates.authority)
    if token:
        session.headers["Authorization"] = f"Bearer {token}"
    return session


def test_a_program_works_as_its_person(
    programs: str, hers: str, places: Places, cluster: Cluster
) -> None:
    program = http(places, hers)
    # The API server asks dex for its keys some seconds after it started.
    me = f"{programs}/api/v1/me"
    until("the API server to know dex", lambda: program.get(me).ok, seconds=60)
    told = program.get(me).json()
    assert told["user"] == "alice@acme.io" and told["namespace"] == "dev-alice"
    assert told["groups"] == ["acme:vision"]
    made = program.post(f"{programs}/api/v1/workspaces", json={"name": "by-program"})
    assert made.status_code == 201, made.text
    assert cluster.get(CLAIMS, "dev-alice", "by-program")["spec"]["parameters"] == {
        "owner": "alice",
        "placement": "EC2",
    }
    # One review serves many requests.
    before = reviews(cluster)
    for _ in range(20):
        assert program.get(f"{programs}/api/v1/workspaces").status_code == 200
    assert reviews(cluster) == before


def reviews(cluster: Cluster) -> int:
    asked = [one["requestURI"] for one in cluster.requests()]
    return len([uri for uri in asked if "tokenreviews" in uri])


def test_a_token_that_is_not_a_persons_lets_nobody_in(
    programs: str, hers: str, places: Places, cluster: Cluster
) -> None:
    head, claims, signature = hers.split(".")
    content = json.loads(base64.urlsafe_b64decode(claims + "=="))
    content["email"] = "bob@acme.io"
    text = base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    for wrong in ("x", f"{head}.{text}.{signature}", f"{none}.{text}."):
        answer = http(places, wrong).get(f"{programs}/api/v1/me")
        assert answer.status_code == 401, (wrong, answer.text)
    # An account of Kubernetes is accepted by the API server, and is no person.
    account = cluster.kubectl("create", "token", CLIENT, "-n", CLIENT).strip()
    answer = http(places, account).get(f"{programs}/api/v1/me")
    assert answer.status_code == 403 and "system:" in answer.json()["detail"]


def test_a_portal_without_programs_takes_no_token(
    portal: str, hers: str, places: Places
) -> None:
    assert http(places, hers).get(f"{portal}/api/v1/me").status_code == 401


def test_a_browsers_cookie_counts_and_not_a_token_beside_it(
    programs: str, hers: str, places: Places
) -> None:
    # With a cookie, a request that writes must still be the portal's own.
    headers = {"Authorization": f"Bearer {hers}", "Cookie": "__Host-session=x"}
    answer = http(places).get(f"{programs}/api/v1/me", headers=headers)
    assert answer.status_code == 401
