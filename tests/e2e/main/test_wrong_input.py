"""The API server refuses wrong input, or the claim names the wrong field."""

from typing import Any

import pytest

from environment.cluster import Cluster
from environment.objects import Refused
from environment.ec2 import Ec2
from environment.emulator import Emulator
from environment.platform import PARAMETERS, Platform, claim
from environment.pools import Pools


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("opencvVersion", "4.8; rm -rf /"),
        ("owner", "alice\nroot"),
        ("owner", "Alice"),
        ("owner", ""),
        ("instanceType", "g4dn xlarge"),
        ("region", "mars"),
        ("placement", "Moon"),
        ("capacityType", "Free"),
        ("pytorchVersion", "latest"),
        ("ssh", {"publicKeys": ["-----BEGIN OPENSSH PRIVATE KEY-----"]}),
        ("ssh", {"allowedCidrs": ["everywhere"]}),
    ],
)
def test_admission_refuses_and_names_the_field(
    platform: Platform, field: str, value: Any
) -> None:
    with pytest.raises(Refused) as refused:
        platform.claim("wrong", **{field: value})
    assert f"spec.parameters.{field}" in str(refused.value)
    # The API server answers a broken pattern with the regular expression.
    assert "should match" not in str(refused.value)


@pytest.mark.parametrize(
    ("ends_at", "word"),
    [
        # The last one that every reader of RFC 3339 knows is a day earlier.
        ("9999-12-31T23:59:59Z", "write a date and time"),
        ("2026-12-24T18:00:00.0123456789Z", "write a date and time"),
        ("2026-12-24 18:00:00Z", "write a date and time"),
        ("2026-02-30T18:00:00Z", "forProvider.endsAt"),
    ],
)
def test_admission_refuses_a_time_that_the_provider_could_not_read(
    cluster: Cluster, namespace: str, ends_at: str, word: str
) -> None:
    pools = Pools(cluster, namespace)
    with pytest.raises(Refused) as refused:
        pools.apply("wrong", parameters={"endsAt": ends_at})
    assert "spec.forProvider.endsAt" in str(refused.value)
    assert word in str(refused.value)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"home": None}, "home cannot be removed"),
        ({"home": {"sizeGiB": 10}}, "the size cannot shrink"),
        ({"region": "us-west-2"}, "region is immutable"),
    ],
)
def test_admission_refuses_what_would_cost_the_home(
    cluster: Cluster, namespace: str, change: dict[str, Any], word: str
) -> None:
    # There is no Composition of this name, so Crossplane composes nothing.
    parameters = {**PARAMETERS, "capacityType": "OnDemand", "home": {"sizeGiB": 20}}
    document = claim(namespace, "home", parameters)
    document["spec"]["compositionRef"] = {"name": "none"}
    cluster.apply(document)
    changed = {key: value for key, value in {**parameters, **change}.items() if value}
    with pytest.raises(Refused) as refused:
        cluster.apply({**document, "spec": {**document["spec"], "parameters": changed}})
    assert word in str(refused.value)


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [
        ("region", "ap-south-1", "us-east-1"),
        ("instanceType", "m7i.large", "g4dn.xlarge"),
        ("ssh", {"allowedCidrs": ["0.0.0.0/0"]}, "allowedCidrs"),
        ("pytorchVersion", "1.0.0", "2.12.0"),
    ],
)
def test_what_policy_forbids_is_shown_on_the_claim_and_nothing_is_launched(
    platform: Platform, ec2: Ec2, field: str, value: Any, word: str
) -> None:
    platform.claim("wrong", **{field: value})
    seen = platform.condition("wrong", "ConfigResolved", "False", word)
    assert f"spec.parameters.{field}" in seen["message"]
    assert ec2.live(platform.namespace) == []
    assert ec2.groups(platform.namespace) == []


def test_a_type_that_ec2_does_not_have_is_shown_on_the_claim(
    platform: Platform, ec2: Ec2, emulator: Emulator, huge: str
) -> None:
    platform.claim("wrong", composition=huge, instanceType="g4dn.huge")
    seen = platform.condition("wrong", "ComputeReady", "False", "g4dn.huge")
    assert "spec.parameters.instanceType" in seen["message"]
    assert platform.status("wrong")["phase"] == "Failed"
    assert ec2.live(platform.namespace) == []


def test_a_workspace_goes_on_running_while_its_claim_makes_no_sense(
    platform: Platform, ec2: Ec2
) -> None:
    platform.claim("alice")
    running = platform.ready("alice")["instanceId"]
    platform.claim("alice", instanceType="m7i.large")
    platform.condition("alice", "ConfigResolved", "False", "instanceType")
    (instance,) = ec2.live(platform.namespace)
    assert instance["InstanceId"] == running
    platform.claim("alice")
    platform.condition("alice", "ConfigResolved", "True")
    assert platform.ready("alice")["instanceId"] == running


@pytest.mark.alone
def test_a_catalogue_that_is_gone_holds_what_runs(
    platform: Platform, ec2: Ec2, cluster: Cluster
) -> None:
    platform.claim("alice")
    running = platform.ready("alice")["instanceId"]
    with cluster.without("environmentconfig", "gpu-workspaces"):
        platform.condition("alice", "ConfigResolved", "False", "gpu-workspaces")
        (instance,) = ec2.live(platform.namespace)
        assert instance["InstanceId"] == running
        assert len(cluster.all("spotpools", platform.namespace)) == 1
    platform.condition("alice", "ConfigResolved", "True")
    assert platform.ready("alice")["instanceId"] == running
