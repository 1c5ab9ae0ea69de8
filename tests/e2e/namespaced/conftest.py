"""Workspaces without claims: users write the composite itself."""

import pytest

from environment.cluster import CLAIMS, Cluster

pytest.register_assert_rewrite(
    "main.test_admission", "main.test_workspace", "main.test_wrong_input"
)


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The cluster. A foreground deletion makes kubectl wait for composed resources."""
    cluster = Cluster.from_environment()
    cluster.composites, cluster.cascade = CLAIMS, "foreground"
    return cluster
