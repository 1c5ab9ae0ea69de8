"""With owners bound to namespaces, nobody can create a claim for another owner."""

import json
from collections.abc import Iterator

import pytest

from environment.cluster import Cluster
from environment.ec2 import Ec2
from environment.platform import PARAMETERS, Platform, claim
from environment.variants import ROOT, composition

LABEL = "platform.acme.io/owner"
COMPOSITION = "gpudevworkspaces-bound"


@pytest.fixture
def bound(cluster: Cluster) -> Iterator[str]:
    """A Composition whose policy binds owners. Crossplane gets access to namespaces."""
    access = ROOT / "examples/platform/owner-binding.yaml"
    cluster.kubectl("apply", "-f", str(access))
    binding = {"ownerBinding": {"namespaceLabel": LABEL}}
    yield composition(cluster, COMPOSITION, binding)
    cluster.kubectl("delete", "composition", COMPOSITION)
    cluster.kubectl("delete", "-f", str(access))


def test_a_claim_for_somebody_else_is_refused_until_the_namespace_is_theirs(
    platform: Platform, cluster: Cluster, ec2: Ec2, bound: str
) -> None:
    namespace = platform.namespace
    cluster.kubectl("label", "namespace", namespace, f"{LABEL}=bob")
    document = claim(namespace, "alice", PARAMETERS)
    document["spec"]["compositionRef"] = {"name": bound}
    cluster.apply(document)
    seen = platform.condition("alice", "ConfigResolved", "False", "must be bob")
    assert "spec.parameters.owner" in seen["message"]
    assert ec2.live(namespace) == []

    cluster.kubectl("label", "--overwrite", "namespace", namespace, f"{LABEL}=alice")
    running = platform.ready("alice")["instanceId"]

    # Without the label, the owner must keep her running instance.
    cluster.kubectl("label", "namespace", namespace, f"{LABEL}-")
    _touch(cluster, document)
    platform.condition("alice", "ConfigResolved", "False", "nobody may have")
    assert [one["InstanceId"] for one in ec2.live(namespace)] == [running]
    platform.delete("alice")


def _touch(cluster: Cluster, document: dict[str, object]) -> None:
    """Changes the claim, so that Crossplane reconciles it at once."""
    changed = json.loads(json.dumps(document))
    changed["spec"]["parameters"]["opencvVersion"] = "4.9.0"
    cluster.apply(changed)
