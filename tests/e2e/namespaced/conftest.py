"""Workspaces without claims: users write the composite itself."""

import pytest

from environment.cluster import CLAIMS, Cluster
from environment.platform import Platform
from environment.waiting import until

pytest.register_assert_rewrite(
    "main.test_admission", "main.test_workspace", "main.test_wrong_input"
)


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The cluster. A foreground deletion makes kubectl wait for composed resources."""
    cluster = Cluster.from_environment()
    cluster.composites, cluster.cascade = CLAIMS, "foreground"
    return cluster


@pytest.fixture
def editor(platform: Platform) -> str:
    """A user with Crossplane's role for editors in the namespace."""
    cluster, name = platform.cluster, "editor@acme.io"
    cluster.kubectl(
        *("create", "rolebinding", "editor", "-n", platform.namespace),
        *("--clusterrole=crossplane-edit", f"--user={name}"),
    )
    # Kubernetes aggregates the role in the background.
    until(
        "the editor's rights",
        lambda: cluster.may(
            name, "patch", CLAIMS, "--subresource=status", "-n", platform.namespace
        ),
    )
    return name
