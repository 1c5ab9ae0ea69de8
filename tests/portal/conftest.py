"""The portal with a real API server and a real provider of identities, without Crossplane."""

import json
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests
from playwright.sync_api import Browser as Chromium

import page as pages
import stage
from cluster import CLAIMS, Cluster
from hostile import Provider
from people import Browser
from processes import port
from stage import Places, Start

PEOPLE = ("alice", "bob", "carol", "nobody")
# The client at a provider whose people get their names from expressions.
EXPRESSIONS = "gpu-expressions"


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return Places.inside(tmp_path_factory.mktemp("portal"))


@pytest.fixture(scope="session")
def expressions(places: Places) -> Iterator[Provider]:
    """A provider whose people get their names from expressions."""
    with closing(Provider(places.certificates, port())) as provider:
        yield provider


@pytest.fixture(scope="module")
def provider(places: Places) -> Iterator[Provider]:
    """A provider that answers what the tests of a module want."""
    with closing(Provider(places.certificates, port())) as provider:
        yield provider


@pytest.fixture
def tls(places: Places) -> ssl.SSLContext:
    """TLS of a client that trusts the portal's certificate authority."""
    return ssl.create_default_context(cafile=str(places.certificates.authority))


@pytest.fixture(scope="session")
def authentication(places: Places, expressions: Provider) -> Path:
    """The API server's file, which the portal reads, too."""
    contractor = "claims.sub.startsWith('ext-')"
    bare = "claims.sub.substring(4).lowerAscii()"
    by_expressions = stage.trusts(
        places,
        expressions.issuer,
        EXPRESSIONS,
        claimMappings={
            "username": {
                "expression": f"{contractor} ? 'ext:' + {bare} : 'acme:' + claims.sub.lowerAscii()"
            },
            "groups": {
                "expression": "has(claims.tenant) ? ['tenant:' + claims.tenant.id]"
                " : claims.?roles.orValue([])"
            },
        },
        claimValidationRules=[
            {"expression": "claims.level >= 2", "message": "the level is too low"},
            {"expression": f"!{contractor} || has(claims.until)"},
        ],
        userValidationRules=[
            {"expression": "!user.groups.exists(group, group == 'banned')"},
        ],
    )
    return stage.written(places, places.issuer, "authentication.yaml", by_expressions)


@pytest.fixture(scope="session")
def dex(places: Places) -> Iterator[str]:
    """A provider of identities that knows our people."""
    groups = dict.fromkeys(PEOPLE, ["vision", "everybody"]) | {"carol": ["platform"]}
    with stage.provider_of_identities(places, groups):
        yield places.issuer


@pytest.fixture(scope="session")
def cluster(places: Places, authentication: Path) -> Iterator[Cluster]:
    with stage.api_server(places, authentication) as cluster:
        cluster.people({name: f"{name}@acme.io" for name in ("alice", "bob")})
        yield cluster


@pytest.fixture(scope="session")
def token(cluster: Cluster) -> str:
    """The portal's own token."""
    return stage.own_token(cluster)


@pytest.fixture(scope="session")
def start(cluster: Cluster, token: str, places: Places) -> Start:
    """A portal for a file of the API server's authentication, until the block ends. The block
    begins when it listens."""
    return stage.portals(cluster, token, places)


@pytest.fixture(scope="session")
def process(
    places: Places, dex: str, start: Start, authentication: Path
) -> Iterator[subprocess.Popen[str]]:
    """The portal's process."""
    ports = (places.portal_port, "portal", places.metrics_port)
    with start(authentication, *ports) as process:
        yield process


@pytest.fixture(scope="session")
def portal(places: Places, process: subprocess.Popen[str]) -> str:
    return places.portal


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    with pages.chromium() as browser:
        yield browser


@pytest.fixture
def measured(portal: str, places: Places) -> Callable[[str], float]:
    """The value of a metric of the portal."""

    def measured(name: str) -> float:
        with requests.Session() as http:
            http.trust_env = False
            text = http.get(f"http://127.0.0.1:{places.metrics_port}/metrics").text
        lines = [line for line in text.splitlines() if line.startswith(f"{name} ")]
        return float(lines[0].split()[-1]) if lines else 0

    return measured


@pytest.fixture
def browser(portal: str, places: Places) -> Browser:
    """A browser in which nobody is signed in."""
    return Browser(portal, places.certificates.authority)


@pytest.fixture
def alice(portal: str, places: Places) -> Browser:
    return signed_in(portal, places, "alice")


@pytest.fixture
def bob(portal: str, places: Places) -> Browser:
    return signed_in(portal, places, "bob")


def signed_in(portal: str, places: Places, name: str) -> Browser:
    browser = Browser(portal, places.certificates.authority)
    browser.sign_in(f"{name}@acme.io")
    assert browser.get("/api/v1/me").status_code == 200
    return browser


@pytest.fixture(autouse=True)
def no_claims(cluster: Cluster) -> Iterator[None]:
    """Each test begins and ends without claims."""
    yield
    for claim in json.loads(cluster.kubectl("get", CLAIMS, "-A", "-o", "json"))[
        "items"
    ]:
        name, namespace = (claim["metadata"][key] for key in ("name", "namespace"))
        if claim["metadata"].get("deletionTimestamp"):
            cluster.collected(namespace, name)
        else:
            cluster.kubectl("delete", CLAIMS, name, "-n", namespace)
