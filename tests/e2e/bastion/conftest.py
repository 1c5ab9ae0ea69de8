"""A platform whose users come through the bastion, and have no rights of their own."""

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from bastion.door import NAMESPACE, Door, Visitor
from bastion.laptop import with_devctl
from cluster.conftest import flavors, image, keys, new_user
from cluster.workspaces import Key, Workspaces
from devctl.conftest import program
from devctl.program import Devctl
from environment import registry, variants
from environment.cluster import Cluster
from environment.objects import Object
from environment.waiting import until
from lifecycle.conftest import agent_url, booting_policy

# Fixtures of other suites.
__all__ = [
    "agent_url",
    "booting_policy",
    "flavors",
    "image",
    "keys",
    "new_user",
    "program",
]

ROOT = Path(__file__).parents[3]
LABELS = {"app.kubernetes.io/name": "gpu-bastion"}


@pytest.fixture(scope="session")
def constrained(cluster: Cluster) -> bool:
    """Whether the API server has constrained impersonation, as it has from Kubernetes
    1.36 on."""
    metrics = cluster.kubectl("get", "--raw", "/metrics")
    gate = 'kubernetes_feature_enabled{name="ConstrainedImpersonation"'
    (line,) = [line for line in metrics.splitlines() if line.startswith(gate)]
    return line.endswith(" 1")


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The private key of an authority whose certificates open accounts. All processes of
    pytest-xdist use one bastion, and it trusts one authority."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with (folder / "authority.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        private = folder / "idp"
        return private if private.exists() else Key.generate(folder, "idp").private


@pytest.fixture(scope="session", autouse=True)
def door(
    cluster: Cluster,
    flavors: None,
    constrained: bool,
    limits: None,
    booting_policy: Object,
    authority: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Door:
    """Two replicas of the bastion, and Compositions that know it."""
    access = {"access": "Bastion"}
    variants.composition(cluster, "devusers", access, of="devusers")
    reference = registry.newest("images/bastion", "bastion")
    roles = "constrained-impersonation" if constrained else "impersonation"
    for name in ("bastion", roles):
        text = (ROOT / f"bastion/manifests/{name}.yaml").read_text()
        # The emulator's machines are reached at their public addresses.
        text = text.replace(
            "args: [broker,", "args: [broker, --instance-address, public,"
        )
        for document in yaml.safe_load_all(text.replace("IMAGE", reference)):
            cluster.apply(document)
            if document["kind"] == "Namespace":
                cluster.apply(trusted(authority))
    cluster.kubectl(
        *("rollout", "status", "statefulset/gpu-bastion", "-n", NAMESPACE),
        "--timeout=180s",
    )
    door = Door(cluster, tmp_path_factory.mktemp("bastion"))
    public = authority.with_suffix(".pub").read_text()
    until("sshd to trust the authority", lambda: door.trusts(public), 120)
    network = allowed(cluster, seen_by_machines())
    agent = {"image": registry.newest("images/agent", "devctl"), "reportInterval": "5s"}
    policy = {
        **booting_policy,
        "cluster": {"agent": agent},
        "bastion": {"namespace": NAMESPACE, "podLabels": LABELS, "cidrs": [network]},
        "ssh": {"userAuthorities": [door.authority()]},
    }
    variants.composition(cluster, "gpudevworkspaces", policy)
    return door


def seen_by_machines() -> str:
    """The network of the bastion as the emulator's machines see it: a node gives packets
    of pods to machines the address of the machines' gateway. It has the second number
    245 where the emulator has 244 (tests/cluster/src/network.rs)."""
    endpoint = urlsplit(os.environ["AWS_ENDPOINT_URL"]).hostname
    assert endpoint is not None
    first, second, *rest = endpoint.split(".")
    assert (first, second) == ("10", "244")
    return ".".join(["10", "245", *rest]) + "/32"


def allowed(cluster: Cluster, network: str) -> str:
    """The network, once the platform's limits allow it."""
    name = "gpu-workspace-limits"
    found = json.loads(cluster.kubectl("get", "environmentconfig", name, "-o", "json"))
    networks = sorted({*found["data"]["sshCidrCeiling"], network})
    cluster.kubectl(
        *("patch", "environmentconfig", name, "--type=merge"),
        *("-p", json.dumps({"data": {"sshCidrCeiling": networks}})),
    )
    return network


def trusted(authority: Path) -> Object:
    """The ConfigMap with the authorities whose certificates open accounts."""
    public = authority.with_suffix(".pub").read_text()
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "gpu-bastion-user-authorities", "namespace": NAMESPACE},
        "data": {"keys": public},
    }


@pytest.fixture
def enter(door: Door) -> Callable[..., Visitor]:
    """A person's way to the bastion, once the bastion knows them."""

    return door.enter


@pytest.fixture
def alice(new_user: Callable[..., Workspaces]) -> Workspaces:
    return new_user()


@pytest.fixture
def bob(new_user: Callable[..., Workspaces]) -> Workspaces:
    return new_user()


@pytest.fixture
def laptop(
    program: Path, alice: Workspaces, enter: Callable[..., Visitor], tmp_path: Path
) -> Devctl:
    """devctl on a laptop of alice's, whose only way is the bastion."""
    return with_devctl(program, enter(alice), alice.namespace, tmp_path)
