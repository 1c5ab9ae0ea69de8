"""Workspaces whose platform stops them: limits of seconds instead of days."""

from collections.abc import Iterator

import pytest

from environment import variants
from environment.cluster import Cluster
from environment.ec2 import Ec2
from environment.platform import Platform
from lifecycle.life import Life

# What claims of the suite may ask for, and what they get that ask for nothing.
POLICY = {
    "lifecycle": {
        "maxLifetime": {"maximum": "14d"},
        "deleteAfterStopped": {"maximum": "30d"},
        "maxExtension": "1h",
    },
    "minimumRefreshSeconds": 10,
}


@pytest.fixture(scope="session")
def composition(cluster: Cluster) -> str:
    return variants.composition(cluster, "lifecycle", POLICY)


@pytest.fixture
def life(platform: Platform, composition: str, ec2: Ec2) -> Iterator[Life]:
    yield Life(platform, composition, ec2)
