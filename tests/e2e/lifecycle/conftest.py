"""Workspaces whose platform stops them: limits of seconds instead of days."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from cluster.conftest import alice, flavors, image, keys, new_user
from environment import variants
from environment.cluster import Cluster
from environment.ec2 import Ec2
from environment.platform import Platform
from lifecycle.life import Life

# Fixtures of the suite `cluster`.
__all__ = ["alice", "flavors", "image", "keys", "new_user"]

# What claims of the suite may ask for, and what they get that ask for nothing.
POLICY = {
    "lifecycle": {
        "maxLifetime": {"maximum": "14d"},
        "deleteAfterStopped": {"maximum": "30d"},
        "maxExtension": "1h",
        "staleAfter": "15s",
    },
    "minimumRefreshSeconds": 10,
}


@pytest.fixture(scope="session")
def composition(cluster: Cluster) -> str:
    return variants.composition(cluster, "lifecycle", POLICY)


@pytest.fixture(scope="session")
def watched(cluster: Cluster) -> str:
    """A Composition whose pods have the agent beside them."""
    agent = {"image": _newest("images/agent"), "reportSeconds": 5}
    policy = {**POLICY, "cluster": {"agent": agent}}
    return variants.composition(cluster, "lifecycle-watched", policy)


def _newest(repository: str) -> str:
    name = f"{os.environ['GPU_WORKSPACES_REGISTRY']}/{repository}"
    listed = subprocess.run(
        ["crane", "ls", name], capture_output=True, text=True, check=False
    )
    tags = listed.stdout.split()
    assert tags, f"nothing in {name}: run the suite by `make e2e SUITE=lifecycle`"
    return f"{name}:{tags[-1]}"


@pytest.fixture
def life(platform: Platform, composition: str, ec2: Ec2) -> Iterator[Life]:
    yield Life(platform, composition, ec2)
