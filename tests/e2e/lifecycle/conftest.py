"""Workspaces that the platform stops, after seconds instead of days."""

import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import boto3
import pytest

from cluster.conftest import alice, flavors, image, keys, new_user
from cluster.workspaces import Key
from environment import registry, variants
from environment.cluster import Cluster
from environment.ec2 import Ec2
from environment.objects import Object
from environment.platform import Platform
from lifecycle.life import Life
from lifecycle.machine import Machine

# The emulator's image that boots, in us-east-1, and the version of its PyTorch.
BOOTING = "ami-00000000000c0deb0"
PYTORCH = "1.13.0"
# Its entry in a catalogue.
BOOTING_IMAGE = {
    "id": BOOTING,
    "pytorch": {"version": PYTORCH, "python": "/opt/pytorch/bin/python3"},
}

# Fixtures of the suite `cluster`.
__all__ = ["alice", "flavors", "image", "keys", "new_user"]

# The policy of the suite: upper limits of the claims' lifecycle fields, and defaults.
POLICY = {
    "lifecycle": {
        "maxLifetime": {"maximum": "14d"},
        "deleteAfterStopped": {"maximum": "30d"},
        "maxExtension": "1h",
        "staleAfter": "15s",
    },
    "minimumRefreshInterval": "10s",
}


@pytest.fixture(scope="session")
def composition(cluster: Cluster) -> str:
    return variants.composition(cluster, "lifecycle", POLICY)


@pytest.fixture(scope="session")
def watched(cluster: Cluster) -> str:
    """A Composition whose pods have an agent container."""
    agent = {
        "image": registry.newest("images/agent", "lifecycle"),
        "reportInterval": "5s",
    }
    policy = {**POLICY, "cluster": {"agent": agent}}
    return variants.composition(cluster, "lifecycle-watched", policy)


@pytest.fixture(scope="session")
def agent_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The URL from which instances download the agent, and the agent's digest."""
    folder = tmp_path_factory.mktemp("agent")
    program = folder / "gpu-workspace-agent"
    written = subprocess.run(
        ["cargo", "xtask", "agent", program],
        check=True,
        capture_output=True,
        text=True,
    )
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer((host(), 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{host()}:{server.server_port}/{program.name}", written.stdout.split()[
            0
        ]
        server.shutdown()


def host() -> str:
    """This host's address for instances: the one from which it connects to EC2."""
    endpoint = urlsplit(os.environ["AWS_ENDPOINT_URL"])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((endpoint.hostname, endpoint.port or 80))
        address: str = probe.getsockname()[0]
    return address


@pytest.fixture(scope="session")
def booting_policy(cluster: Cluster, agent_url: tuple[str, str]) -> Object:
    """The policy of workspaces whose instances boot as machines, with the agent."""
    iam = boto3.client("iam")
    profile = "gpu-workspace"
    trust = {"Version": "2012-10-17", "Statement": []}
    # An earlier run may have created them.
    with suppress(iam.exceptions.EntityAlreadyExistsException):
        iam.create_role(RoleName=profile, AssumeRolePolicyDocument=json.dumps(trust))
        iam.create_instance_profile(InstanceProfileName=profile)
        iam.add_role_to_instance_profile(InstanceProfileName=profile, RoleName=profile)
    catalogue = variants.catalogue(
        cluster,
        "gpu-workspaces-booting",
        {"images": {"us-east-1": {"default": BOOTING_IMAGE}}},
    )
    url, digest = agent_url
    agent = {"url": url, "sha256": digest, "reportInterval": "5s"}
    return {
        "catalogue": {"name": catalogue},
        "lifecycle": {**POLICY["lifecycle"], "staleAfter": "20s", "agent": agent},
        "instance": {"iamInstanceProfile": profile, "sudo": True},
        "home": {"moves": True},
    }


@pytest.fixture(scope="session")
def booting(cluster: Cluster, booting_policy: Object) -> str:
    """A Composition with this policy."""
    # Each test process serves the agent at an address of its own, and so needs its own
    # Composition.
    worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
    return variants.composition(cluster, f"lifecycle-booting-{worker}", booting_policy)


@pytest.fixture
def machine(
    platform: Platform, booting: str, ec2: Ec2, tmp_path: Path
) -> Iterator[Machine]:
    key = Key.generate(tmp_path, "key")
    yield Machine(platform, booting, ec2, key=key, here=f"{host()}/32")


@pytest.fixture
def life(platform: Platform, composition: str, ec2: Ec2) -> Iterator[Life]:
    yield Life(platform, composition, ec2)
