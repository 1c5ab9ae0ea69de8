"""A pool that the provider cannot read hurts only itself."""

import json

import pytest

from environment.cluster import SYSTEM, Cluster, condition
from environment.ec2 import Ec2
from environment.objects import Object
from environment.pools import PODS, Pools, operations, samples
from environment.waiting import until

pytestmark = pytest.mark.alone

SECRET = "do-not-print-me"
GAUGE = (
    'gpu_spot_unreadable_objects{gvk="gpu.platform.acme.io/v1alpha1, Kind=SpotPool"}'
)


def sized(number: int) -> dict[str, object]:
    return {"size": {"minimum": number, "maximum": number}}


def test_every_other_pool_goes_on_before_and_after_a_restart(
    cluster: Cluster, namespace: str, ec2: Ec2
) -> None:
    pools = Pools(cluster, namespace)
    for name in ("good", "bad"):
        pools.apply(name, parameters={"userData": f"#!/bin/sh\n# {SECRET}\n"})
    pools.ready("good")
    (kept,) = pools.ready("bad")["status"]["atProvider"]["instances"]

    # The API server admits this time, and no process of the provider can read it.
    _write(pools, "bad", "9999-12-31T23:59:59Z")
    bad = pools.says("bad", "Synced", "False", "status.atProvider.spotShortSince")
    assert "9999" not in condition(bad, "Synced")["message"]
    until("the event", lambda: "Unreadable" in _events(cluster, namespace))
    until("the metric", lambda: _count(cluster) == 1)
    _grows(pools, ec2, 2)
    logs = _log(cluster)

    cluster.replace_pods(PODS)
    until("the metric again", lambda: _count(cluster) == 1)
    _grows(pools, ec2, 3)
    assert kept["id"] in {one["InstanceId"] for one in ec2.live(namespace)}
    logs += _log(cluster)
    assert "cannot read an object" in logs
    assert SECRET not in logs + _events(cluster, namespace)

    _write(pools, "bad", None)
    pools.says("bad", "Synced", "True")
    (same,) = pools.ready("bad")["status"]["atProvider"]["instances"]
    assert same["id"] == kept["id"]
    until("no unreadable pool", lambda: _count(cluster) == 0)
    for name in ("good", "bad"):
        pools.delete(name)
    assert ec2.live(namespace) == []


def _write(pools: Pools, name: str, time: str | None) -> None:
    patch = json.dumps({"status": {"atProvider": {"spotShortSince": time}}})
    pools.cluster.kubectl(
        *("patch", "spotpool", name, "-n", pools.namespace, "--subresource=status"),
        *("--type=merge", "-p", patch),
    )


def _grows(pools: Pools, ec2: Ec2, number: int) -> None:
    """The good pool gets this many instances, beside the one of the bad pool."""
    pools.patch("good", {"forProvider": sized(number)})
    until(
        f"{number} instances of the good pool",
        lambda: len(ec2.live(pools.namespace)) == number + 1,
    )
    pools.ready("good")


def _pod(cluster: Cluster) -> Object:
    (pod,) = cluster.pods(PODS)
    return pod


def _count(cluster: Cluster) -> float:
    return samples(operations(cluster, "/metrics", _pod(cluster))).get(GAUGE, -1)


def _log(cluster: Cluster) -> str:
    return cluster.kubectl("logs", "-n", SYSTEM, _pod(cluster)["metadata"]["name"])


def _events(cluster: Cluster, namespace: str) -> str:
    return cluster.kubectl("get", "events", "-n", namespace)
