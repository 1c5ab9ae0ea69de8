"""A lease gives one person a warm instance within seconds, until the lease ends."""

import base64
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from environment.cluster import Cluster
from environment.ec2 import Ec2, tags
from environment.leases import KEY, Leases
from environment.pools import Pools
from environment.waiting import until

EXAMPLES = Path(__file__).parents[3] / "examples/pools"
TAG = "gpu.platform.acme.io:"
WARM = {"size": {"minimum": 0, "maximum": 3, "idle": 1}, "leases": {}}


@pytest.fixture
def leases(cluster: Cluster, namespace: str) -> Leases:
    return Leases(cluster, namespace)


def _example(name: str) -> Any:
    return yaml.safe_load((EXAMPLES / name).read_text())


def _ids(ec2: Ec2, namespace: str) -> set[str]:
    return {one["InstanceId"] for one in ec2.live(namespace)}


def _warm(pools: Pools) -> str:
    (instance,) = pools.ready("shared")["status"]["atProvider"]["instances"]
    warm: str = instance["id"]
    return warm


def test_a_warm_instance_is_somebodys_within_seconds_and_nobodys_after_that(
    pools: Pools, leases: Leases, ec2: Ec2
) -> None:
    example = _example("shared.yaml")["spec"]["forProvider"]
    pools.apply("shared", parameters=example)
    warm = _warm(pools)
    asked = time.monotonic()
    leases.ask("alice", **_example("lease.yaml")["spec"]["forProvider"])
    assert leases.ready("alice") == warm
    took = time.monotonic() - asked
    print(f"a warm instance {took:.1f} s after kubectl apply")
    assert took < 5

    told = tags(ec2.instance(warm))
    assert told[f"{TAG}owner"] == "bob"
    assert told[f"{TAG}lease-name"] == f"{leases.namespace}/alice"
    assert told[f"{TAG}authorized-key-1"] == KEY
    assert told[f"{TAG}authorized-key-2"] == ""
    until("the next one", lambda: len(_ids(ec2, pools.namespace)) == 2)
    secret = pools.cluster.get("secret", "alice-ssh", pools.namespace)
    assert secret is not None
    address = ec2.instance(warm)["PublicIpAddress"]
    assert base64.b64decode(secret["data"]["endpoint"]).decode() == address

    leases.end("alice")
    until("it to end", lambda: warm not in _ids(ec2, pools.namespace))
    leases.ask("bob")
    assert leases.ready("bob") != warm
    leases.end("bob")
    pools.delete("shared")
    assert _ids(ec2, pools.namespace) == set()


def test_keys_are_exchanged_while_somebody_works(
    pools: Pools, leases: Leases, ec2: Ec2
) -> None:
    pools.apply("shared", parameters=WARM)
    leases.ask("alice")
    has = leases.ready("alice")
    leases.ask("alice", authorizedKeys=[])
    key = f"{TAG}authorized-key-1"
    until("the key to go", lambda: tags(ec2.instance(has))[key] == "")
    assert leases.ready("alice") == has
    leases.end("alice")
    pools.delete("shared")


def test_a_lease_ends_with_its_time_and_says_so(
    pools: Pools, leases: Leases, ec2: Ec2
) -> None:
    pools.apply("shared", parameters={**WARM, "leases": {"maxLifetime": "1m"}})
    leases.ask("alice", lifetime="1h")
    has = leases.ready("alice")
    shown = leases.get("alice")
    assert shown is not None and shown["status"]["atProvider"]["expiresAt"]
    leases.says("alice", "Expired", "make another lease")
    until("it to end", lambda: has not in _ids(ec2, pools.namespace), 10)
    leases.end("alice")
    pools.delete("shared")


def test_who_waits_learns_what_for(pools: Pools, leases: Leases) -> None:
    leases.ask("alice")
    leases.says("alice", "Unavailable", "there is no SpotPool shared")
    pools.apply("closed")
    leases.ask("bob", pool="closed")
    leases.says("bob", "Unavailable", "spec.forProvider.leases")
    full = {"size": {"minimum": 0, "maximum": 1}, "leases": {}}
    pools.apply("shared", parameters=full)
    leases.ready("alice")
    leases.ask("carol")
    leases.says("carol", "PoolFull", "size.maximum of 1")
    for name in ("alice", "bob"):
        leases.end(name)
    leases.ready("carol")
    leases.end("carol")
    pools.delete("shared")
    pools.delete("closed")


def test_a_deleted_pool_waits_for_whoever_works_on_it(
    pools: Pools, leases: Leases, ec2: Ec2
) -> None:
    pools.apply("shared", parameters=WARM)
    leases.ask("alice")
    has = leases.ready("alice")
    pools.delete("shared", wait=False)
    until("the idle one to go", lambda: _ids(ec2, pools.namespace) == {has})
    pool = pools.get("shared")
    assert pool is not None
    assert leases.ready("alice") == has
    pools.annotate("shared", "gpu.platform.acme.io/end-leases=true")
    until("the pool to go", lambda: pools.get("shared") is None)
    assert _ids(ec2, pools.namespace) == set()
    leases.says("alice", "Unavailable", "there is no SpotPool")
    leases.end("alice")
