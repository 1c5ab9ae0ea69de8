"""What the portal needs around it: an API server, a provider of identities, and certificates. The
portal's benchmark uses it, too."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import certificates as certificate_files
import crossplane
from certificates import Certificates
from cluster import ROOT, Cluster, definitions
from processes import listens, port, running, until

CLIENT = "gpu-portal"
SECRET = "the-secret-of-the-portal"
# bcrypt of "password".
HASH = "$2a$10$2b2cU8CPhOTaGrs1HRQuAueS7JTT5ZHsHSzYiFPm1leZck7Mc8T4W"
XTASK = os.environ.get("XTASK_PROGRAM", str(ROOT / "target/debug/xtask"))
PORTAL = os.environ.get("GPU_PORTAL", str(ROOT / "target/debug/gpu-portal"))

Start = Callable[..., AbstractContextManager[subprocess.Popen[str]]]


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

    @classmethod
    def inside(cls, folder: Path) -> "Places":
        return cls(folder, certificate_files.make(folder), *(port() for _ in range(4)))


def written(places: Places, issuer: str, name: str, *more: dict[str, Any]) -> Path:
    """The API server's file for a provider of identities, which the portal reads, too. `more` are the
    entries of other providers."""
    path = places.folder / name
    entry = trusts(
        places,
        issuer,
        CLIENT,
        claimMappings={
            "username": {"claim": "email", "prefix": ""},
            "groups": {"claim": "groups", "prefix": "acme:"},
        },
    )
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [entry, *more],
    }
    path.write_text(yaml.safe_dump(document))
    return path


def trusts(places: Places, issuer: str, client: str, **rules: Any) -> dict[str, Any]:
    """An entry of that file."""
    about = {
        "url": issuer,
        "audiences": [client],
        "certificateAuthority": places.certificates.authority.read_text(),
    }
    return {"issuer": about, **rules}


@contextmanager
def provider_of_identities(
    places: Places, groups: dict[str, list[str]]
) -> Iterator[None]:
    """Dex, until the block ends. It knows these people, each with groups."""
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
                "groups": of_person,
            }
            for name, of_person in groups.items()
        ],
        "staticClients": [
            {
                "id": CLIENT,
                "name": "GPU portal",
                "secret": SECRET,
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
        yield


@contextmanager
def api_server(
    places: Places,
    authentication: Path,
    impersonation: str = "constrained-impersonation",
    **more: str,
) -> Iterator[Cluster]:
    """An API server with our kinds and the portal's rights, until the block ends. `more` are its
    options, with `_` for `-`."""
    audit = places.folder / "audit.log"
    policy = places.folder / "audit.yaml"
    rule = {"level": "Metadata", "omitStages": ["RequestReceived"]}
    policy.write_text(
        yaml.safe_dump(
            {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [rule]}
        )
    )
    arguments: dict[str, str | Path] = {
        "authentication-config": authentication,
        "audit-policy-file": policy,
        "audit-log-path": audit,
    }
    arguments |= {name.replace("_", "-"): value for name, value in more.items()}
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
        prepared(running_cluster, impersonation)
        yield running_cluster
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(30)


def prepared(cluster: Cluster, impersonation: str) -> None:
    cluster.apply(*definitions())
    crossplane.install(cluster)
    for name in ("rights", impersonation):
        manifest = ROOT / f"portal/manifests/{name}.yaml"
        cluster.kubectl("apply", "-f", str(manifest))
    cluster.kubectl("apply", "-f", str(ROOT / "examples/platform/cluster-rbac.yaml"))


def own_token(cluster: Cluster) -> str:
    """The portal's own token."""
    return cluster.kubectl("create", "token", CLIENT, "-n", CLIENT).strip()


def with_token(cluster: Cluster, token: str, path: Path) -> Path:
    """A kubeconfig for a token."""
    admin = yaml.safe_load(cluster.kubeconfig.read_text())
    for user in admin["users"]:
        user["user"] = {"token": token}
    path.write_text(yaml.safe_dump(admin))
    return path


def portals(
    cluster: Cluster, token: str, places: Places, shows: Callable[[str], None] = print
) -> Start:
    """A portal for a file of the API server's authentication, until the block ends. The block
    begins when it listens. The portal's log is shown at the end."""
    kubeconfig = with_token(cluster, token, places.folder / "portal-kubeconfig")
    secret = places.folder / "client-secret"
    secret.write_text(f"{SECRET}\n")

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
            shows(log.read_text())

    return start
