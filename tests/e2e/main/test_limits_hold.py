"""No claim, no policy and no revision of a Composition switches off a limit."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from environment.cluster import Cluster
from environment.ec2 import Ec2
from environment.objects import Object
from environment.platform import PARAMETERS, Platform, claim
from environment.variants import composition
from environment.waiting import until

LIMITS = "gpu-workspace-limits"
LIFETIME = "40s"
SHORT = {"lifecycle": {"maxLifetime": {"default": LIFETIME, "maximum": LIFETIME}}}
# A type that neither the shipped policy nor the platform's limits allow.
LARGE = "g4dn.4xlarge"
LAX = {
    "allowedInstanceTypes": ["g4dn.*"],
    "ceilings": None,
    "ownerBinding": None,
    "lifecycle": None,
}


@pytest.fixture(scope="session")
def short(cluster: Cluster) -> str:
    """A Composition whose workspaces run for seconds."""
    return composition(cluster, "short", SHORT)


@pytest.fixture
def own(cluster: Cluster, namespace: str) -> Iterator[str]:
    """A Composition of this test, whose workspaces run for seconds."""
    yield composition(cluster, f"short-{namespace}", SHORT)
    cluster.kubectl("delete", "composition", f"short-{namespace}")


@pytest.mark.parametrize(
    "mistake",
    [
        {"lifecycle": {"maxLifetime": "9999d"}},
        {"ssh": {"allowedCidrs": ["0.0.0.0/0"]}},
        {"instanceType": LARGE},
    ],
    ids=lambda mistake: next(iter(mistake)),
)
@pytest.mark.parametrize("is_running", [False, True], ids=["launching", "running"])
def test_a_refused_edit_keeps_no_machine_beyond_its_deadline(
    platform: Platform, ec2: Ec2, short: str, is_running: bool, mistake: dict[str, Any]
) -> None:
    platform.claim("alice", composition=short)
    if is_running:
        platform.ready("alice")
    else:
        platform.pool()
    platform.claim("alice", composition=short, **mistake)
    platform.condition("alice", "ConfigResolved", "False", next(iter(mistake)))
    until("the machine", lambda: ec2.live(platform.namespace), 60)
    _ends(platform, ec2)
    assert platform.status("alice")["cost"]["soFarUsd"] > 0


def test_an_unreadable_policy_keeps_no_machine_beyond_its_deadline(
    platform: Platform, cluster: Cluster, ec2: Ec2, own: str
) -> None:
    platform.claim("alice", composition=own)
    platform.ready("alice")
    unreadable = {"op": "add", "path": "/spec/pipeline/0/input/lifetime", "value": "1h"}
    cluster.kubectl(
        *("patch", "composition", own, "--type=json", "-p", json.dumps([unreadable]))
    )
    platform.condition("alice", "ConfigResolved", "False", "input.lifetime")
    _ends(platform, ec2)


def test_a_lowered_maximum_ends_what_runs_longer(
    platform: Platform, cluster: Cluster, ec2: Ec2
) -> None:
    name = f"lowered-{platform.namespace}"
    composition(cluster, name, {})
    try:
        platform.claim("alice", composition=name, lifecycle={"maxLifetime": "10d"})
        platform.ready("alice")
        composition(cluster, name, SHORT)
        platform.condition("alice", "ConfigResolved", "False", f"at most {LIFETIME}")
        _ends(platform, ec2)
    finally:
        cluster.kubectl("delete", "composition", name)


def test_a_laxer_composition_is_bound_by_the_platforms_limits(
    platform: Platform, cluster: Cluster, ec2: Ec2
) -> None:
    lax = composition(cluster, "lax", LAX)
    platform.claim("large", composition=lax, instanceType=LARGE)
    platform.condition("large", "ConfigResolved", "False", f"{LARGE} is not allowed")
    platform.claim("stolen", composition=lax, owner="bob")
    platform.condition("stolen", "ConfigResolved", "False", "must be alice")
    assert ec2.live(platform.namespace) == []


def test_an_older_laxer_revision_is_bound_by_the_platforms_limits(
    platform: Platform, cluster: Cluster, ec2: Ec2
) -> None:
    name = f"revised-{platform.namespace}"
    composition(cluster, name, LAX)
    try:

        def revisions() -> list[Object]:
            listed = cluster.kubectl(
                *("get", "compositionrevisions", "-o", "json"),
                *("-l", f"crossplane.io/composition-name={name}"),
            )
            items: list[Object] = json.loads(listed)["items"]
            return items

        (old,) = until("the first revision", revisions)
        composition(cluster, name, {})
        until("the second revision", lambda: len(revisions()) == 2)
        document = claim(
            platform.namespace, "old", {**PARAMETERS, "instanceType": LARGE}
        )
        document["spec"] |= {
            "compositionRef": {"name": name},
            "compositionUpdatePolicy": "Manual",
            "compositionRevisionRef": {"name": old["metadata"]["name"]},
        }
        cluster.apply(document)
        platform.condition("old", "ConfigResolved", "False", f"{LARGE} is not allowed")
        assert ec2.live(platform.namespace) == []
    finally:
        cluster.kubectl("delete", "composition", name)


@pytest.mark.alone
def test_without_the_platforms_limits_nothing_starts_and_what_runs_keeps_its_end(
    platform: Platform, cluster: Cluster, ec2: Ec2, short: str
) -> None:
    platform.claim("runs", composition=short)
    platform.ready("runs")
    with cluster.without("environmentconfig", LIMITS):
        platform.condition("runs", "ConfigResolved", "False", LIMITS)
        platform.claim("waits")
        platform.condition("waits", "ConfigResolved", "False", "LimitsMissing")
        assert len(ec2.live(platform.namespace)) == 1
        _ends(platform, ec2, "runs")
    platform.ready("waits")


def _ends(platform: Platform, ec2: Ec2, name: str = "alice") -> None:
    until("the machine to end", lambda: ec2.live(platform.namespace) == [], 120)
    status = platform.phase(name, "Expired")
    assert status["lifecycle"]["stoppedBecause"] == "MaxLifetime"
