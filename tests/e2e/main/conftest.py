"""The fixture that the tests of rendering share."""

from collections.abc import Iterator

import pytest

from environment.cluster import Cluster
from environment.rendering import serving
from environment.variants import catalogue, composition


@pytest.fixture(scope="session")
def function() -> Iterator[str]:
    """Runs the function outside the cluster, and yields its address."""
    with serving() as address:
        yield address


@pytest.fixture(scope="session")
def huge(cluster: Cluster) -> str:
    """A Composition that allows an instance type that EC2 does not have."""
    prices = {"hourlyUsd": {"us-east-1": {"g4dn.huge": 0.1}}}
    policy = {
        "catalogue": {
            "name": catalogue(cluster, "gpu-workspaces-huge", {"prices": prices})
        },
        "allowedInstanceTypes": ["g4dn.xlarge", "g4dn.huge"],
    }
    return composition(cluster, "huge", policy)
