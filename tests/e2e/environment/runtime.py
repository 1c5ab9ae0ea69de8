"""Runs the provider with other arguments, by a DeploymentRuntimeConfig."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

from .cluster import Cluster
from .pools import PODS, PROVIDER
from .waiting import until

# The runtime that `cargo xtask demo` installs the provider with.
DEFAULT = "provider-gpu-spot-beside-emulator"


def of_emulator() -> str:
    """The flag that lets a ProviderConfig name the emulator as its endpoint."""
    return f"--allowed-endpoints={os.environ['AWS_ENDPOINT_URL']}"


@contextmanager
def arguments(
    cluster: Cluster, name: str, *arguments: str, replicas: int = 1
) -> Iterator[None]:
    """Restarts the provider with these arguments, and afterwards with the default."""
    container = {
        "name": "package-runtime",
        "args": [of_emulator(), *arguments],
        "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}},
    }
    template = {"spec": {"containers": [container]}}
    deployment = {"replicas": replicas, "selector": {}, "template": template}
    cluster.apply(
        {
            "apiVersion": "pkg.crossplane.io/v1beta1",
            "kind": "DeploymentRuntimeConfig",
            "metadata": {"name": name},
            "spec": {"deploymentTemplate": {"spec": deployment}},
        }
    )
    use(cluster, name, replicas)
    yield
    use(cluster, DEFAULT)


def use(cluster: Cluster, config: str, replicas: int = 1) -> None:
    """Restarts the provider with a DeploymentRuntimeConfig."""
    old = {pod["metadata"]["uid"] for pod in cluster.pods(PODS)}
    patch = json.dumps({"spec": {"runtimeConfigRef": {"name": config}}})
    cluster.kubectl(
        *("patch", "provider.pkg.crossplane.io", PROVIDER, "--type=merge", "-p", patch)
    )
    until(
        f"{replicas} new pods of the provider",
        lambda: len(cluster.pods(PODS)) == replicas and cluster.renewed(PODS, old),
        seconds=120,
    )
