"""No developer changes what the function remembers of a workspace."""

import json

import pytest

from environment.cluster import CLAIMS, Cluster
from environment.ec2 import Ec2
from environment.objects import Object, Refused
from environment.platform import Platform
from environment.waiting import until

RECORDS = "workspacerecords.platform.acme.io"
# What a developer would write to get another image, and a run without an end.
FORGED = {
    "image": {"id": "ami-evil", "name": "default"},
    "lifecycle": {
        "startedAt": "2099-01-01T00:00:00Z",
        "limits": {"maxLifetime": "9999d"},
    },
    "cost": None,
}


@pytest.mark.parametrize(
    ("subresource", "change"),
    [
        ("status", {"status": FORGED}),
        ("", {"spec": {"crossplane": {"resourceRefs": []}}}),
    ],
)
def test_nobody_but_crossplane_writes_status_and_list_of_resources(
    platform: Platform, editor: str, subresource: str, change: Object
) -> None:
    platform.claim("alice")
    platform.ready("alice")
    with pytest.raises(Refused, match="Crossplane's to write"):
        _patch(platform, editor, subresource, change)
    _patch(platform, editor, "", {"metadata": {"labels": {"team": "vision"}}})


def test_nobody_but_crossplane_writes_a_record(platform: Platform, editor: str) -> None:
    verbs = ("create", "update", "patch", "delete")
    here = ("-n", platform.namespace)
    may = platform.cluster.may
    assert not any(may(editor, verb, RECORDS, *here) for verb in verbs)


@pytest.mark.alone
def test_a_forged_status_keeps_no_machine_and_changes_no_image(
    platform: Platform, cluster: Cluster, ec2: Ec2, editor: str
) -> None:
    platform.claim("alice", lifecycle={"maxLifetime": "40s"})
    image = platform.ready("alice")["image"]
    binding = "validatingadmissionpolicybinding"
    with cluster.without(binding, "gpu-workspaces-status"):
        until("the policy to be gone", lambda: _forged(platform, editor))
    until("the machine to end", lambda: ec2.live(platform.namespace) == [], 120)
    status = platform.phase("alice", "Expired")
    assert status["image"] == image
    assert status["cost"]["soFarUsd"] > 0


def test_the_record_goes_with_its_workspace(
    platform: Platform, cluster: Cluster
) -> None:
    platform.claim("alice")
    platform.ready("alice")
    (record,) = cluster.all("workspacerecords", platform.namespace)
    spec, workspace = record["spec"], platform.workspace("alice")
    metadata = workspace["metadata"]
    assert spec["workspace"] == {"name": "alice", "uid": metadata["uid"]}
    assert spec["owner"] == "alice"
    assert spec["status"]["image"] == workspace["status"]["image"]
    platform.delete("alice")
    assert cluster.all("workspacerecords", platform.namespace) == []


def _forged(platform: Platform, editor: str) -> bool:
    try:
        _patch(platform, editor, "status", {"status": FORGED})
    except Refused as refused:
        assert "Crossplane's to write" in str(refused), refused
        return False
    return True


def _patch(platform: Platform, user: str, subresource: str, change: Object) -> None:
    part = [f"--subresource={subresource}"] if subresource else []
    platform.cluster.kubectl(
        *("patch", CLAIMS, "alice", "-n", platform.namespace, "--type=merge"),
        *(f"--as={user}", *part, "-p", json.dumps(change)),
    )
