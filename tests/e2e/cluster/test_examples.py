"""The examples for users and for workspaces in the cluster."""

from collections.abc import Iterator

import pytest
import yaml

from cluster.conftest import deleted
from environment.cluster import CLAIMS, Cluster, is_ready
from environment.variants import ROOT
from environment.waiting import until

NAMESPACE = "dev-dave"


@pytest.fixture
def dave(cluster: Cluster) -> Iterator[None]:
    cluster.kubectl("apply", "-f", str(ROOT / "examples/users"))
    until("dave", lambda: is_ready(cluster.get("devusers", "dave", "default")), 120)
    yield
    cluster.delete_claims(NAMESPACE)
    cluster.kubectl("delete", "pvc", "--all", "-n", NAMESPACE, "--timeout=60s")

    until("dave to be deleted", lambda: deleted(cluster, "dave"), seconds=90)


def test_the_examples_are_accepted_and_the_small_one_gets_ready(
    cluster: Cluster, dave: None
) -> None:
    cluster.kubectl(
        "apply", "--dry-run=server", "-f", str(ROOT / "examples/platform/flavors.yaml")
    )
    cluster.kubectl("apply", "-f", str(ROOT / "examples/cluster"))
    claims = {claim["metadata"]["name"] for claim in cluster.all(CLAIMS, NAMESPACE)}
    files = (ROOT / "examples/cluster").glob("*.yaml")
    assert claims == {yaml.safe_load(f.read_text())["metadata"]["name"] for f in files}
    until(
        "dave-notebook to be Ready",
        lambda: is_ready(cluster.get(CLAIMS, "dave-notebook", NAMESPACE)),
        seconds=120,
    )
