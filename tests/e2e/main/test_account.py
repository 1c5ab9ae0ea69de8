"""Credentials of another account buy nothing again, and end nothing that they cannot see."""

from collections.abc import Iterator

import pytest

from environment.cluster import Cluster, condition
from environment.configurations import Configurations
from environment.ec2 import ENDED, Ec2
from environment.emulator import Emulator
from environment.pools import Pools
from environment.waiting import until

PROFILE = "[default]\naws_access_key_id = AKIATEST\naws_secret_access_key = x\n"
HERE, THERE = "123456789012", "777788889999"
IN_THE_OTHER = [{"roleARN": f"arn:aws:iam::{THERE}:role/pools"}]


@pytest.fixture
def configurations(
    cluster: Cluster, namespace: str, emulator: Emulator
) -> Iterator[Configurations]:
    configurations = Configurations(cluster, namespace, emulator)
    configurations.secret(PROFILE)
    yield configurations
    configurations.remove()


def test_another_account_buys_nothing_again_and_the_first_one_goes_on(
    pools: Pools, ec2: Ec2, emulator: Emulator, configurations: Configurations
) -> None:
    reference = configurations.apply("own", configurations.keys())
    pools.apply("pool", providerConfigRef=reference)
    before = pools.ready("pool")["status"]["atProvider"]
    assert before["account"] == HERE
    (instance,) = ec2.live(pools.namespace)

    configurations.apply("own", configurations.keys(), assumeRoleChain=IN_THE_OTHER)
    seen = pools.says("pool", "Synced", "False", THERE)
    told = condition(seen, "Synced")
    assert told["reason"] == "AccountChanged"
    for part in ('ProviderConfig "own"', HERE, instance["InstanceId"]):
        assert part in told["message"]
    assert pools.look_again("pool", "first")["status"]["atProvider"] == before
    pools.delete("pool", wait=False)
    assert pools.look_again("pool", "second")["metadata"]["deletionTimestamp"]
    assert _changes_there(emulator) == []

    configurations.apply("own", configurations.keys(), assumeRoleChain=[])
    until("the pool to go", lambda: pools.get("pool") is None)
    assert ec2.live(pools.namespace) == []
    assert ec2.instance(instance["InstanceId"])["State"]["Name"] in ENDED


def _changes_there(emulator: Emulator) -> list[str]:
    """The calls with credentials of the other account that may change something."""
    calls = emulator.latest(seconds=120)
    there = [one["operation"] for one in calls if one["account"] == THERE]
    assert "GetCallerIdentity" in there
    reads = ("Describe", "Get")
    return [one for one in there if not one.startswith(reads)]
