"""The cluster with flavors, queues and two users."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from cluster.workspaces import Key, Workspaces
from environment import registry
from environment.cluster import Cluster, is_ready
from environment.objects import Refused
from environment.variants import composition, flavor
from environment.waiting import until

OPTED_IN = {"platform.acme.io/gpu-workspaces": "managed"}

NewUser = Callable[..., Workspaces]


@pytest.fixture(scope="session")
def image() -> str:
    """The workspace image in the cluster's registry."""
    return registry.newest("images/workspace", "cluster", prefix="cpu-")


@pytest.fixture(scope="session", autouse=True)
def flavors(cluster: Cluster, image: str) -> None:
    gpu = {"gpus": 1, "gpuProduct": "Emulated", "overrides": {"maxGpus": 2}}
    names = [flavor(cluster, image, "cpu-small"), flavor(cluster, image, "gpu", **gpu)]
    for name in names:
        until(
            f"WorkspaceFlavor {name} to be Ready",
            lambda name=name: is_ready(
                cluster.get("workspaceflavors", name, "default")
            ),
        )


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Key]:
    folder = tmp_path_factory.mktemp("keys")
    return lambda name: Key.generate(folder, name)


@pytest.fixture
def new_user(cluster: Cluster, keys: Callable[[str], Key]) -> Iterator[NewUser]:
    """Creates DevUsers. The fixture deletes them with their claims and homes."""
    made: list[Workspaces] = []

    def make(
        composition: str = "devusers", quota: dict[str, str] | None = None
    ) -> Workspaces:
        name = f"dev{uuid.uuid4().hex[:6]}"
        key = keys(name)
        cluster.apply(
            {
                "apiVersion": "platform.acme.io/v1alpha1",
                "kind": "DevUser",
                "metadata": {"name": name},
                "spec": {
                    "publicKeys": [key.public],
                    "quota": quota or {},
                    "crossplane": {"compositionRef": {"name": composition}},
                },
            }
        )
        until(
            f"DevUser {name} to be Ready",
            lambda: is_ready(cluster.get("devusers", name, "default")),
            # Claims are counted once their definition is a minute old.
            seconds=120,
        )
        user = Workspaces(cluster, f"dev-{name}", name, key)
        made.append(user)
        return user

    yield make
    for user in made:
        user.forget()
    for user in made:
        until(
            f"DevUser {user.owner} to be deleted",
            lambda user=user: deleted(cluster, user.owner),
            seconds=90,
        )


@pytest.fixture
def alice(new_user: NewUser) -> Workspaces:
    return new_user()


@pytest.fixture
def bob(new_user: NewUser) -> Workspaces:
    return new_user()


@pytest.fixture
def team(new_user: NewUser, queued: str) -> Workspaces:
    """A user whose namespace has a queue, and may run no pods outside the queue."""
    return new_user("devusers-queued")


@pytest.fixture(scope="session")
def queued(cluster: Cluster) -> str:
    """A Composition with Kueue's queues, and the quota of one GPU workspace."""
    for document in yaml.safe_load_all(
        (Path(__file__).parent / "queues.yaml").read_text()
    ):
        cluster.apply(document)
    users = {
        "namespaceLabels": OPTED_IN,
        "queue": {"name": "gpus", "clusterQueue": "gpus"},
    }
    composition(cluster, "devusers-queued", users, of="devusers")
    queue = {
        "default": "gpus",
        "defaultPriorityClass": "batch",
        "allowedPriorityClasses": ["batch", "interactive"],
    }
    return composition(cluster, "queued", {"cluster": {"queue": queue}})


def deleted(cluster: Cluster, name: str) -> bool:
    """Deletes a DevUser. Returns False while it is protected: the protection notices
    some time later that the user's homes are gone."""
    try:
        cluster.kubectl("delete", "devuser", name, "--wait=false", "--ignore-not-found")
    except Refused as refused:
        assert "in-use" in str(refused), refused
        return False
    return cluster.get("devusers", name, "default") is None
