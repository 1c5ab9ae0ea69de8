"""The shipped policy binds owners to namespaces: nobody can create a claim for another owner."""

import json

import pytest
from environment.cluster import Cluster
from environment.ec2 import Ec2, tags
from environment.objects import Refused
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


def test_a_claim_without_an_owner_belongs_to_the_owner_of_its_namespace(
    platform: Platform, cluster: Cluster, ec2: Ec2
) -> None:
    namespace = platform.namespace
    cluster.kubectl("label", "--overwrite", "namespace", namespace, f"{LABEL}=alice")
    document = claim(namespace, "hers", {**PARAMETERS})
    del document["spec"]["parameters"]["owner"]
    cluster.apply(document)
    status = platform.ready("hers")
    assert status["owner"] == "alice"
    assert tags(ec2.live(namespace)[0])["owner"] == "alice"

    # The claim may name its owner later. It may not name another one.
    document["spec"]["parameters"]["owner"] = "alice"
    cluster.apply(document)
    with pytest.raises(Refused, match="owner is immutable"):
        cluster.apply(claim(namespace, "hers", {**PARAMETERS, "owner": "bob"}))
    del document["spec"]["parameters"]["owner"]
    with pytest.raises(Refused, match="owner cannot be removed"):
        cluster.apply(document)

    # The label names bob now. Alice stays the owner, and her instance keeps running.
    cluster.kubectl("label", "--overwrite", "namespace", namespace, f"{LABEL}=bob")
    _touch(cluster, claim(namespace, "hers", PARAMETERS))
    platform.condition("hers", "ConfigResolved", "False", "must be bob")
    assert len(ec2.live(namespace)) == 1
    platform.delete("hers")


def _touch(cluster: Cluster, document: dict[str, object]) -> None:
    """Changes the claim, so that Crossplane reconciles it at once."""
    changed = json.loads(json.dumps(document))
    changed["spec"]["parameters"]["opencvVersion"] = "4.9.0"
    cluster.apply(changed)
