"""A platform whose users come through the bastion, and have no rights of their own."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from bastion.door import NAMESPACE, Door, Visitor
from cluster.conftest import flavors, image, keys, new_user
from cluster.workspaces import Workspaces
from environment import registry, variants
from environment.cluster import Cluster
from environment.waiting import until

# Fixtures of other suites.
__all__ = ["flavors", "image", "keys", "new_user"]

ROOT = Path(__file__).parents[3]
LABELS = {"app.kubernetes.io/name": "gpu-bastion"}


@pytest.fixture(scope="session", autouse=True)
def door(
    cluster: Cluster, flavors: None, tmp_path_factory: pytest.TempPathFactory
) -> Door:
    """Two replicas of the bastion, and Compositions that know it."""
    peers = {"bastion": {"namespace": NAMESPACE, "podLabels": LABELS}}
    variants.composition(cluster, "gpudevworkspaces", peers)
    access = {"access": "Bastion"}
    variants.composition(cluster, "devusers", access, of="devusers")
    reference = registry.newest("images/bastion", "bastion")
    for name in ("bastion", "constrained-impersonation"):
        text = (ROOT / f"bastion/manifests/{name}.yaml").read_text()
        for document in yaml.safe_load_all(text.replace("IMAGE", reference)):
            cluster.apply(document)
    cluster.kubectl(
        *("rollout", "status", "statefulset/gpu-bastion", "-n", NAMESPACE),
        "--timeout=180s",
    )
    return Door(cluster, tmp_path_factory.mktemp("bastion"))


@pytest.fixture
def enter(door: Door) -> Callable[..., Visitor]:
    """A person's way to the bastion, once the bastion knows them."""

    def known(user: Workspaces, replica: int = 0) -> Visitor:
        visitor = door.visitor(user.owner, user.key, replica)
        until(
            f"the bastion to know {user.owner}",
            lambda: visitor("whoami").returncode == 0,
            30,
        )
        return visitor

    return known


@pytest.fixture
def alice(new_user: Callable[..., Workspaces]) -> Workspaces:
    return new_user()


@pytest.fixture
def bob(new_user: Callable[..., Workspaces]) -> Workspaces:
    return new_user()
