"""Crossplane installs what our key signed and refuses other bytes under the same
reference. The commands are those of docs/install.md, "Signatures".

Crossplane fetches Sigstore's keys from the internet when it starts. Here it finds others
in a folder of this machine, as in a cluster without internet.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from environment.cluster import SYSTEM, Cluster
from environment.objects import Object
from environment.variants import ROOT
from environment.waiting import until

FUNCTIONS = "functions.pkg.crossplane.io"
KEY = "gpu-workspaces-release-key"
CONFIG = ROOT / "examples/platform/image-config.yaml"
DEPLOYMENT = "deployment/crossplane"
# Crossplane sets TUF_ROOT to this folder of its package cache when it starts. It replaces
# the value of the Deployment (cmd/crossplane/core/core.go).
TRUST = "/cache/xpkg/.sigstore/root"


def run(*arguments: str | Path) -> str:
    ran = subprocess.run(
        arguments, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, f"{arguments}: {ran.stderr}"
    return ran.stdout.strip()


@pytest.fixture(scope="module")
def registry() -> str:
    return os.environ["GPU_WORKSPACES_REGISTRY"]


@pytest.fixture(scope="module")
def function(registry: str) -> str:
    """The repository of the function, with packages that differ: `signed`, `changed`."""
    repository = f"{registry}/acme/function-gpu-workspace"
    tags = [tag for tag in run("crane", "ls", repository).split() if "-dev." in tag]
    assert tags, f"nothing in {repository}: run the suite by `make e2e`"
    run("crane", "copy", f"{repository}:{tags[-1]}", f"{repository}:signed")
    run(
        *("crane", "mutate", f"{repository}:signed", "--label", "changed=yes"),
        *("--tag", f"{repository}:changed"),
    )
    return repository


@pytest.fixture(scope="module")
def private_key(
    cluster: Cluster, registry: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The private key whose signatures Crossplane requires."""
    folder: Path = tmp_path_factory.mktemp("signatures")
    private, public = folder / "release.key", folder / "release.pub"
    curve = "ec_paramgen_curve:P-256"
    run("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", curve, "-out", private)
    run("openssl", "pkey", "-in", private, "-pubout", "-out", public)
    trust = folder / "trust"
    signatures = run("cargo", "xtask", "cluster", "binary", "signatures")
    run(signatures, "trust", trust)
    run("chmod", "-R", "a+rwX", trust)
    cluster.kubectl(
        *("create", "secret", "generic", KEY, "--namespace", SYSTEM),
        f"--from-file=cosign.pub={public}",
    )
    text = CONFIG.read_text().replace("registry.platform.acme.io", registry)
    cluster.kubectl("apply", "-f", "-", stdin=text)
    patch = json.dumps(verification(trust))
    cluster.kubectl("patch", DEPLOYMENT, "-n", SYSTEM, "--type=json", "-p", patch)
    try:
        rolled_out(cluster)
        yield private
    finally:
        cluster.kubectl("delete", "-f", "-", stdin=text)
        cluster.kubectl("rollout", "undo", DEPLOYMENT, "-n", SYSTEM)
        rolled_out(cluster)
        cluster.kubectl("delete", "secret", KEY, "-n", SYSTEM)


def rolled_out(cluster: Cluster) -> None:
    cluster.kubectl("rollout", "status", DEPLOYMENT, "-n", SYSTEM, "--timeout=5m")


def verification(trust: Path) -> list[Object]:
    """What the chart's values of docs/install.md change in the Deployment, and the
    folder with keys."""
    container = "/spec/template/spec/containers/0"
    key = "/release-key"
    added: list[tuple[str, object]] = [
        (f"{container}/args/-", "--enable-signature-verification"),
        (
            f"{container}/env/-",
            {"name": "SIGSTORE_REKOR_PUBLIC_KEY", "value": f"{key}/cosign.pub"},
        ),
        (f"{container}/volumeMounts/-", {"name": "release-key", "mountPath": key}),
        (f"{container}/volumeMounts/-", {"name": "trust", "mountPath": TRUST}),
        # The folder names its own path, from which it is renewed.
        (f"{container}/volumeMounts/-", {"name": "trust", "mountPath": str(trust)}),
        (
            "/spec/template/spec/volumes/-",
            {"name": "release-key", "secret": {"secretName": KEY}},
        ),
        (
            "/spec/template/spec/volumes/-",
            {"name": "trust", "hostPath": {"path": str(trust)}},
        ),
    ]
    return [{"op": "add", "path": path, "value": value} for path, value in added]


@pytest.fixture
def installed(cluster: Cluster) -> Iterator[str]:
    """The name of the function that a test installs."""
    name = "signed-function"
    yield name
    cluster.kubectl("delete", FUNCTIONS, name, "--ignore-not-found", "--timeout=2m")


def condition(cluster: Cluster, name: str, kind: str) -> Object:
    found: Object = json.loads(cluster.kubectl("get", FUNCTIONS, name, "-o", "json"))
    conditions = found.get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == kind), {})


def test_a_package_that_our_key_signed_becomes_healthy(
    cluster: Cluster, function: str, private_key: Path, installed: str
) -> None:
    reference = f"{function}:signed"
    signed = run("cargo", "xtask", "package", "sign", reference, "--key", private_key)
    assert signed.startswith(f"{function}@sha256:")
    run("crossplane", "xpkg", "install", "function", reference, installed)
    until(
        "the signed package to be healthy",
        lambda: condition(cluster, installed, "Healthy").get("status") == "True",
        seconds=120,
        instead=lambda: condition(cluster, installed, "Installed"),
    )


def test_other_bytes_under_the_same_reference_are_refused(
    cluster: Cluster, function: str, private_key: Path, installed: str
) -> None:
    reference = f"{function}:replaced"
    run("crane", "copy", f"{function}:signed", reference)
    run("cargo", "xtask", "package", "sign", reference, "--key", private_key)
    run("crane", "copy", f"{function}:changed", reference)
    run("crossplane", "xpkg", "install", "function", reference, installed)
    refused = until(
        "Crossplane to refuse the package",
        lambda: condition(cluster, installed, "Installed"),
        seconds=120,
    )
    assert refused["status"] == "False"
    assert refused["reason"] == "UnpackingPackage"
    assert "signature verification failed" in refused["message"]
    revisions = cluster.kubectl(
        *("get", "functionrevisions.pkg.crossplane.io", "-o", "name"),
        *("-l", f"pkg.crossplane.io/package={installed}"),
    )
    assert revisions == ""
