"""The portal with a real API server and a real provider of identities, without Crossplane."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from playwright.sync_api import Browser as Chromium

import certificates as certificate_files
import crossplane
import page as pages
from certificates import Certificates
from cluster import CLAIMS, ROOT, Cluster, definitions
from people import Browser
from processes import listens, port, running, until

CLIENT = "gpu-portal"
# bcrypt of "password".
HASH = "$2a$10$2b2cU8CPhOTaGrs1HRQuAueS7JTT5ZHsHSzYiFPm1leZck7Mc8T4W"
PEOPLE = ("alice", "bob", "carol", "nobody")
XTASK = os.environ.get("XTASK_PROGRAM", str(ROOT / "target/debug/xtask"))
PORTAL = os.environ.get("GPU_PORTAL", str(ROOT / "target/debug/gpu-portal"))


def binary(name: str) -> str:
    ran = subprocess.run(
        [XTASK, "cluster", "binary", name], check=True, capture_output=True, text=True
    )
    return ran.stdout.strip()


@dataclass(frozen=True)
class Places:
    """Where everything is."""

    folder: Path
    certificates: Certificates
    dex_port: int
    portal_port: int
    metrics_port: int
    # Of a portal that acts as the persons themselves.
    persons_port: int

    @property
    def issuer(self) -> str:
        return f"https://127.0.0.1:{self.dex_port}/dex"

    @property
    def portal(self) -> str:
        return f"https://localhost:{self.portal_port}"


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    folder = tmp_path_factory.mktemp("portal")
    return Places(folder, certificate_files.make(folder), *(port() for _ in range(4)))


@pytest.fixture(scope="session")
def authentication(places: Places) -> Path:
    """The API server's file, which the portal reads, too."""
    return written(places, places.issuer, "authentication.yaml")


def written(places: Places, issuer: str, name: str) -> Path:
    path = places.folder / name
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [
            {
                "issuer": {
                    "url": issuer,
                    "audiences": [CLIENT],
                    "certificateAuthority": places.certificates.authority.read_text(),
                },
                "claimMappings": {
                    "username": {"claim": "email", "prefix": ""},
                    "groups": {"claim": "groups", "prefix": "acme:"},
                },
            }
        ],
    }
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture(scope="session")
def dex(places: Places) -> Iterator[str]:
    """A provider of identities that knows three people."""
    config = {
        "issuer": places.issuer,
        "storage": {"type": "memory"},
        "web": {
            "https": f"127.0.0.1:{places.dex_port}",
            "tlsCert": str(places.certificates.certificate),
            "tlsKey": str(places.certificates.key),
        },
        "oauth2": {"skipApprovalScreen": True, "passwordConnector": "local"},
        "enablePasswordDB": True,
        "staticPasswords": [
            {
                "email": f"{name}@acme.io",
                "hash": HASH,
                "username": name,
                "userID": name,
                "groups": ["platform"] if name == "carol" else ["vision", "everybody"],
            }
            for name in PEOPLE
        ],
        "staticClients": [
            {
                "id": CLIENT,
                "name": "GPU portal",
                "secret": "the-secret-of-the-portal",
                "redirectURIs": [
                    f"https://localhost:{number}/login/callback"
                    for number in (places.portal_port, places.persons_port)
                ],
            }
        ],
    }
    path = places.folder / "dex.yaml"
    path.write_text(yaml.safe_dump(config))
    with running([binary("dex"), "serve", path], places.folder / "dex.log"):
        until("dex", lambda: listens(places.dex_port))
        yield places.issuer


@pytest.fixture(scope="session")
def cluster(places: Places, authentication: Path) -> Iterator[Cluster]:
    audit = places.folder / "audit.log"
    policy = places.folder / "audit.yaml"
    rule = {"level": "Metadata", "omitStages": ["RequestReceived"]}
    policy.write_text(
        yaml.safe_dump(
            {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [rule]}
        )
    )
    arguments = {
        "authentication-config": authentication,
        "audit-policy-file": policy,
        "audit-log-path": audit,
    }
    words = [f"--argument={name}={value}" for name, value in arguments.items()]
    process = subprocess.Popen(
        [XTASK, "cluster", "control-plane", places.folder / "api-server", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        kubeconfig = process.stdout.readline().strip()
        assert kubeconfig, "the API server did not start"
        running_cluster = Cluster(binary("kubectl"), Path(kubeconfig), audit)
        prepared(running_cluster)
        yield running_cluster
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(30)


def prepared(cluster: Cluster) -> None:
    cluster.apply(*definitions())
    crossplane.install(cluster)
    impersonation = "constrained-impersonation"
    for name in ("rights", impersonation):
        manifest = ROOT / f"portal/manifests/{name}.yaml"
        cluster.kubectl("apply", "-f", str(manifest))
    cluster.kubectl("apply", "-f", str(ROOT / "examples/platform/cluster-rbac.yaml"))
    for name in ("alice", "bob"):
        cluster.person(name, f"{name}@acme.io")


@pytest.fixture(scope="session")
def token(cluster: Cluster) -> str:
    """The portal's own token."""
    return cluster.kubectl("create", "token", CLIENT, "-n", CLIENT).strip()


@pytest.fixture(scope="session")
def start(
    cluster: Cluster, token: str, places: Places
) -> Callable[..., AbstractContextManager[subprocess.Popen[str]]]:
    """A portal for a file of the API server's authentication, until the block ends. The block
    begins when it listens."""
    admin = yaml.safe_load(cluster.kubeconfig.read_text())
    for user in admin["users"]:
        user["user"] = {"token": token}
    kubeconfig = places.folder / "portal-kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(admin))
    secret = places.folder / "client-secret"
    secret.write_text("the-secret-of-the-portal\n")

    @contextmanager
    def start(
        authentication: Path, number: int, name: str, metrics: int = 0, **more: object
    ) -> Iterator[subprocess.Popen[str]]:
        config = places.folder / f"{name}.yaml"
        config.write_text(
            yaml.safe_dump(
                {
                    "publicUrl": f"https://localhost:{number}",
                    "authentication": str(authentication),
                    "client": {"id": CLIENT, "secretFile": str(secret)},
                    "groups": {"include": ["acme:vis*", "acme:platform"]},
                    **more,
                }
            )
        )
        words: list[str | Path] = [
            *(PORTAL, "--configuration", config, "--namespace", CLIENT),
            *("--listen", f"127.0.0.1:{number}"),
            *("--metrics", f"127.0.0.1:{metrics or port()}"),
            *("--tls-certificate", places.certificates.certificate),
            *("--tls-key", places.certificates.key),
        ]
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        log = places.folder / f"{name}.log"
        with running(words, log, env=environment) as process:

            def serves() -> bool:
                assert process.poll() is None, log.read_text()
                return listens(number)

            until("the portal", serves)
            yield process
            print(log.read_text())

    return start


@pytest.fixture(scope="session")
def portal(
    places: Places, dex: str, start: Callable[..., Any], authentication: Path
) -> Iterator[str]:
    ports = (places.portal_port, "portal", places.metrics_port)
    with start(authentication, *ports):
        yield places.portal


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
