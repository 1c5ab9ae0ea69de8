"""No claim and no policy keeps pods beyond their deadline."""

from typing import Any

import pytest

from cluster.workspaces import Workspaces
from environment.cluster import Cluster
from environment.variants import composition
from environment.waiting import until

LIFETIME = "40s"


@pytest.fixture(scope="session")
def short(cluster: Cluster) -> str:
    """A Composition whose workspaces run for seconds."""
    bounds = {"default": LIFETIME, "maximum": LIFETIME}
    return composition(cluster, "short", {"lifecycle": {"maxLifetime": bounds}})


@pytest.mark.parametrize(
    "mistake",
    [
        {"lifecycle": {"maxLifetime": "9999d"}},
        {"ssh": {"allowedCidrs": ["0.0.0.0/0"]}},
        {"home": {"sizeGiB": 16000}},
    ],
    ids=lambda mistake: next(iter(mistake)),
)
@pytest.mark.parametrize("is_running", [False, True], ids=["starting", "running"])
def test_a_refused_edit_keeps_no_pod_beyond_its_deadline(
    alice: Workspaces, short: str, is_running: bool, mistake: dict[str, Any]
) -> None:
    alice.claim("notebook", composition=short)
    if is_running:
        alice.ready("notebook")
    else:
        until("the pod", lambda: alice.pods("notebook"))
    alice.change("notebook", **mistake)
    alice.condition("notebook", "ConfigResolved", "False", next(iter(mistake)))
    until("the pod to end", lambda: alice.pods("notebook") == [], 120)
    status = alice.phase("notebook", "Expired")
    assert status["lifecycle"]["stoppedBecause"] == "MaxLifetime"
    assert status["cost"]["soFarUsd"] > 0
