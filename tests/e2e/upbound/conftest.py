"""upbound's provider in the cluster, with the emulator instead of AWS."""

import json
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from documents import policies
from environment.cluster import Cluster, is_ready
from environment.objects import Object
from environment.ec2 import WORKSPACE, Ec2
from environment.emulator import Emulator
from environment.platform import Platform
from environment.variants import composition
from environment.waiting import until
from cluster.workspaces import Key
from lifecycle.conftest import agent_url, booting_policy, host
from lifecycle.machine import Machine

# Fixtures of the suite `lifecycle`.
__all__ = ["agent_url", "booting_policy"]

REGION = "us-east-1"
PACKAGE = "upbound-provider-aws-ec2"
# The access key of upbound's provider, which has the documented permissions only.
ACCESS_KEY = "AKIAUPBOUNDPROVIDER1"
PERMISSIONS = "provider-aws.json"
# The Compositions, by the provider that makes on-demand workspaces.
COMPOSITIONS = {
    "ProviderAws": "provider-aws/gpudevworkspaces-provider-aws",
    "SpotPool": "gpudevworkspaces",
}
PLATFORM = Path(__file__).parent / "platform"
# Texts of the committed manifests, and what replaces each.
PLACES = {
    "https://ec2.emulator": os.environ["AWS_ENDPOINT_URL"],
    "ACCESS_KEY": ACCESS_KEY,
}


@pytest.fixture(scope="session", autouse=True)
def upbound(cluster: Cluster) -> None:
    """Configures upbound's provider, a dependency of one of our configurations."""
    packages = cluster.kubectl("get", "providers.pkg.crossplane.io", "-o", "name")
    assert PACKAGE in packages, (
        "configuration-gpu-workspaces-provider-aws is not installed: run the suite "
        "by `make e2e SUITE=upbound`"
    )
    _apply(cluster, "runtime.yaml")
    # Crossplane reads the runtime of an ImageConfig only when it installs a package. As
    # a dependency of the configuration, this package is already installed.
    named = {"spec": {"runtimeConfigRef": {"name": "upbound-aws"}}}
    cluster.kubectl(
        "patch",
        f"providers.pkg.crossplane.io/{PACKAGE}",
        "--type=merge",
        f"--patch={json.dumps(named)}",
    )
    arguments = _runtime_arguments()
    until(
        f"{PACKAGE} to run with {arguments}",
        lambda: _runs_with(cluster, arguments),
        seconds=300,
    )
    policy = (policies.FOLDER / PERMISSIONS).read_text().replace("CONFIG", "default")
    Emulator.from_environment().limit(ACCESS_KEY, json.loads(policy))
    _apply(cluster, "access.yaml")


@pytest.fixture
def machine(
    platform: Platform,
    cluster: Cluster,
    booting_policy: Object,
    ec2: Ec2,
    tmp_path: Path,
) -> Callable[[str], Machine]:
    """A workspace whose instance boots, on demand by a provider."""
    key = Key.generate(tmp_path, "key")
    worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")

    def of(provider: str) -> Machine:
        variant = composition(
            cluster,
            f"booting-{provider.lower()}-{worker}",
            booting_policy,
            of=COMPOSITIONS[provider],
        )
        return Machine(platform, variant, ec2, key=key, here=f"{host()}/32")

    return of


@pytest.fixture(scope="session")
def ec2() -> Ec2:
    return Ec2(REGION, WORKSPACE)


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A team's namespace. The deletion of its workspaces takes minutes."""
    name = f"team-{uuid.uuid4().hex[:8]}"
    cluster.create_namespace(name)
    yield name
    cluster.delete_claims(name, 300)
    cluster.delete_namespace(name)


@pytest.fixture(scope="session")
def deleting_homes(cluster: Cluster) -> str:
    """A Composition whose policy deletes homes with their claims."""
    policy = {"home": {"onDelete": "Delete"}}
    return composition(
        cluster,
        "deleting-homes",
        policy,
        of="provider-aws/gpudevworkspaces-provider-aws",
    )


def _runs_with(cluster: Cluster, arguments: list[str]) -> bool:
    pods = cluster.pods(f"provider={PACKAGE}")
    return bool(pods) and all(
        is_ready(pod) and pod["spec"]["containers"][0].get("args") == arguments
        for pod in pods
    )


def _runtime_arguments() -> list[str]:
    config = next(
        one
        for one in _documents("runtime.yaml")
        if one["kind"] == "DeploymentRuntimeConfig"
    )
    pod = config["spec"]["deploymentTemplate"]["spec"]["template"]["spec"]
    arguments: list[str] = pod["containers"][0]["args"]
    return arguments


def _apply(cluster: Cluster, name: str) -> None:
    for document in _documents(name):
        cluster.apply(document)


def _documents(name: str) -> list[Object]:
    text = (PLATFORM / name).read_text()
    for place, value in PLACES.items():
        text = text.replace(place, value)
    return list(yaml.safe_load_all(text))
