"""Workspaces without claims: what users write is the composite itself."""

import pytest

from environment.cluster import CLAIMS, Cluster

pytest.register_assert_rewrite("main.test_workspace", "main.test_wrong_input")


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The cluster, where a deletion waits for what was composed if it is told to."""
    cluster = Cluster.from_environment()
    cluster.composites, cluster.cascade = CLAIMS, "foreground"
    return cluster
