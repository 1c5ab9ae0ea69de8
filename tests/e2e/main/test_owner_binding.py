"""The shipped policy binds owners to namespaces: nobody can create a claim for another owner."""

import json

from environment.cluster import Cluster
from environment.ec2 import Ec2
from environment.platform import PARAMETERS, Platform, claim

LABEL = "platform.acme.io/owner"


def test_a_claim_for_somebody_else_is_refused_until_the_namespace_is_theirs(
    platform: Platform, cluster: Cluster, ec2: Ec2
) -> None:
    namespace = platform.namespace
    cluster.kubectl("label", "--overwrite", "namespace", namespace, f"{LABEL}=bob")
    document = claim(namespace, "alice", PARAMETERS)
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
