"""All packages by digest, as docs/install.md says: no tag decides which bytes run."""

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from environment.cluster import Cluster
from environment.objects import Object
from environment.waiting import until

XRD = "xrd/gpudevworkspaces.platform.acme.io"
PACKAGES = {
    "provider": "provider-gpu-spot",
    "function": "function-gpu-workspace",
    "configuration": "configuration-gpu-workspaces",
}


@pytest.fixture
def by_digest(cluster: Cluster) -> Iterator[dict[str, str]]:
    """The packages' references. The test's packages are deleted at its end."""
    references = {}
    for kind, name in PACKAGES.items():
        repository = f"{os.environ['GPU_WORKSPACES_REGISTRY']}/acme/{name}"
        tags = [tag for tag in crane("ls", repository).split() if "-dev." in tag]
        assert tags, f"nothing in {repository}: run the suite by `make e2e`"
        digest = crane("digest", f"{repository}:{tags[-1]}")
        references[kind] = f"{repository}@{digest}"
    yield references
    delete = ("delete", "--ignore-not-found", "--timeout=2m")
    cluster.kubectl(*delete, package("configuration"))
    cluster.kubectl("wait", "--for=delete", XRD, "--timeout=5m")
    cluster.kubectl(*delete, package("function"), package("provider"))


def crane(*arguments: str) -> str:
    ran = subprocess.run(
        ["crane", *arguments], capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()


def package(kind: str) -> str:
    return f"{kind}.pkg.crossplane.io/acme-{PACKAGES[kind]}"


def install(cluster: Cluster, kind: str, reference: str, **spec: bool) -> None:
    cluster.apply(
        {
            "apiVersion": "pkg.crossplane.io/v1",
            "kind": kind.capitalize(),
            "metadata": {"name": f"acme-{PACKAGES[kind]}"},
            "spec": {"package": reference, **spec},
        }
    )


def test_packages_by_digest_are_healthy_where_nobody_compares_their_versions(
    cluster: Cluster, by_digest: dict[str, str]
) -> None:
    for kind in ("provider", "function"):
        install(cluster, kind, by_digest[kind])
        cluster.kubectl(
            "wait", package(kind), "--for=condition=Healthy", "--timeout=5m"
        )
    install(cluster, "configuration", by_digest["configuration"])
    until(
        "Crossplane to compare the versions",
        lambda: "invalid semantic version" in json.dumps(revision(cluster)),
        seconds=120,
        instead=lambda: revision(cluster),
    )
    install(
        cluster,
        "configuration",
        by_digest["configuration"],
        skipDependencyResolution=True,
    )
    cluster.kubectl(
        "wait", package("configuration"), "--for=condition=Healthy", "--timeout=5m"
    )


def revision(cluster: Cluster) -> list[Object]:
    """The conditions of the configuration's revisions."""
    kind = "configurationrevisions.pkg.crossplane.io"
    found = json.loads(cluster.kubectl("get", kind, "-o", "json"))["items"]
    return [one.get("status", {}).get("conditions", []) for one in found]
