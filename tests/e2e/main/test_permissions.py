"""The provider works with the permissions of docs/aws/provider.json, and these reach
nothing of others."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from environment.bystander import Bystander
from environment.cluster import Cluster
from environment.configurations import Configurations
from environment.ec2 import Ec2, networks
from environment.emulator import Emulator
from environment.leases import Leases
from environment.pools import Pools, identity
from environment.variants import ROOT
from environment.waiting import until

POLICY = ROOT / "docs/aws/provider.json"
HOME = {"sizeGiB": 1, "onDelete": "Delete"}


@pytest.fixture
def key(cluster: Cluster, emulator: Emulator) -> str:
    """An access key with the provider's policy, filled in as docs/install.md does."""
    own = until("the identity", lambda: identity(cluster))
    policy = POLICY.read_text().replace("IDENTITY", own)
    key = f"AKIA{uuid.uuid4().hex[:16].upper()}"
    emulator.limit(key, json.loads(policy))
    return key


@pytest.fixture
def pools(
    cluster: Cluster, namespace: str, emulator: Emulator, key: str
) -> Iterator[Pools]:
    """The pools of a namespace whose configuration has the key."""
    configurations = Configurations(cluster, namespace, emulator)
    profile = f"[default]\naws_access_key_id = {key}\naws_secret_access_key = x\n"
    configurations.secret(profile)
    configurations.apply("limited", configurations.keys())
    yield Pools(cluster, namespace)
    configurations.remove()


def test_the_documented_permissions_are_enough_for_a_pools_whole_life(
    pools: Pools, ec2: Ec2
) -> None:
    limited = {"kind": "ProviderConfig", "name": "limited"}
    leases = Leases(pools.cluster, pools.namespace)
    pools.apply("home", parameters={"home": HOME}, providerConfigRef=limited)
    warm = {"size": {"minimum": 0, "maximum": 2, "idle": 1}, "leases": {}}
    pools.apply("shared", parameters=warm, providerConfigRef=limited)
    leases.ask("alice")
    leases.ready("alice")
    pools.ready("home")
    pools.patch("home", {"forProvider": {"home": {**HOME, "sizeGiB": 2}}})
    until(
        "the home to grow",
        lambda: [home["Size"] for home in ec2.homes(pools.namespace)] == [2],
    )
    for wanted in (["203.0.113.0/24"], ["198.51.100.0/24"]):
        pools.patch("home", {"forProvider": {"ssh": {"allowedCidrs": wanted}}})
        _await_networks(pools, ec2, wanted)
    leases.end("alice")
    for name in ("home", "shared"):
        pools.delete(name)
    assert ec2.live(pools.namespace) == []
    assert ec2.groups(pools.namespace) == []
    assert ec2.homes(pools.namespace) == []


def test_the_documented_permissions_reach_nothing_of_others(
    key: str, ec2: Ec2, emulator: Emulator, bystander: Bystander
) -> None:
    limited = boto3.client(
        "ec2",
        region_name=ec2.region,
        endpoint_url=emulator.url,
        aws_access_key_id=key,
        aws_secret_access_key="x",
    )
    theirs = bystander.id
    mine = [{"Key": "gpu.platform.acme.io:cluster", "Value": "x"}]
    calls: list[tuple[Any, dict[str, Any]]] = [
        (limited.terminate_instances, {"InstanceIds": [theirs]}),
        (limited.create_tags, {"Resources": [theirs], "Tags": mine}),
        (limited.get_console_output, {"InstanceId": theirs}),
    ]
    for call, request in calls:
        with pytest.raises(ClientError, match="UnauthorizedOperation"):
            call(**request)


def _await_networks(pools: Pools, ec2: Ec2, wanted: list[str]) -> None:
    until("the rules to change", lambda: _opened(pools, ec2) == wanted)


def _opened(pools: Pools, ec2: Ec2) -> list[str]:
    """The networks for which the group of the pool `home` is open."""
    mark = {"Key": ec2.mark, "Value": f"{pools.namespace}/home"}
    (group,) = [one for one in ec2.groups(pools.namespace) if mark in one["Tags"]]
    return networks(group)
