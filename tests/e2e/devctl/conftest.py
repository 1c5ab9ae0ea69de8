"""A platform whose workspaces devctl can use, and owners with devctl."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.conftest import alice, bob, flavors, image, keys, new_user
from cluster.workspaces import Workspaces
from devctl.program import Devctl, installed
from environment import registry, variants
from environment.cluster import Cluster
from environment.objects import Object
from lifecycle.conftest import agent_url, booting_policy, host

# Fixtures of other suites.
__all__ = [
    "agent_url",
    "alice",
    "bob",
    "booting_policy",
    "flavors",
    "image",
    "keys",
    "new_user",
]

# A platform's menu: the flavor that the first design of devctl names.
LARGE = {"gpus": 1, "gpuProduct": "Emulated", "overrides": {"maxGpus": 2}}


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The static program, in a folder whose name has a blank."""
    path = tmp_path_factory.mktemp("a folder") / "devctl"
    subprocess.run(["cargo", "xtask", "devctl", path], check=True, capture_output=True)
    return path


@pytest.fixture(scope="session", autouse=True)
def platform_policy(
    cluster: Cluster, booting_policy: Object, image: str, flavors: None
) -> None:
    """Instances that boot, and agents, for claims that name no Composition: devctl
    names none."""
    pods = {"image": registry.newest("images/agent", "devctl"), "reportInterval": "5s"}
    policy = {**booting_policy, "cluster": {"agent": pods}}
    variants.composition(cluster, "gpudevworkspaces", policy)
    variants.flavor(cluster, image, "gpu-large", **LARGE)


@pytest.fixture
def devctl(program: Path, alice: Workspaces, tmp_path: Path) -> Devctl:
    """devctl of a user with a namespace of their own."""
    return of_user(program, alice, tmp_path)


@pytest.fixture
def installed_for(program: Path, tmp_path: Path) -> Callable[[Workspaces], Devctl]:
    return lambda user: of_user(program, user, tmp_path)


def of_user(program: Path, user: Workspaces, folder: Path) -> Devctl:
    home = folder / f"home of {user.owner}"
    return installed(program, home, user.namespace, user.key, user.owner)


@pytest.fixture
def instance(devctl: Devctl) -> Callable[..., str]:
    """Creates an EC2 workspace that boots, and waits for it."""
    return lambda name, *options: booted(devctl, name, *options)


def booted(devctl: Devctl, name: str, *options: str) -> str:
    return devctl.says(
        *("create", name, "--instance-type", "g4dn.xlarge"),
        *("--region", "us-east-1", "--opencv", "4.8.0"),
        *("--allow", f"{host()}/32", *options),
    )
