"""docs/disaster-recovery.md as it is written: a restored control plane adopts everything."""

from pathlib import Path
from typing import Any

import pytest

from documents import suites
from environment.cluster import Cluster
from environment.ec2 import Ec2
from environment.emulator import Emulator
from environment.leases import Leases
from environment.platform import Platform
from environment.pools import Pools, identity
from environment.waiting import until

from .lost import lose_everything

CLAIMS = ["at-rest", "with-home", "without-home"]
LEASES = ["bob", "carol"]
WARM = {"size": {"minimum": 0, "maximum": 3, "idle": 1}, "leases": {}}
# The operations of EC2 that change nothing begin with one of these words.
READS = ("Describe", "Get")


@pytest.fixture
def team(cluster: Cluster, namespace: str) -> Platform:
    return Platform(cluster, namespace)


def test_a_control_plane_that_lost_every_object_adopts_every_instance_and_home(
    team: Platform, ec2: Ec2, emulator: Emulator, tmp_path: Path
) -> None:
    cluster, namespace = team.cluster, team.namespace
    pools = Pools(cluster, namespace)
    _work(team, pools)
    before, own = _in_aws(ec2, namespace), identity(cluster)
    addresses = {name: team.status(name).get("publicIp") for name in CLAIMS}
    leases = Leases(cluster, namespace)
    leased = {name: leases.ready(name) for name in LEASES}
    uids = _uids(cluster, namespace)
    assert len(before["instances"]) == 5 and len(before["volumes"]) == 2

    backup = {"BACKUP": str(tmp_path / "backup")}
    suites.run("backup", backup)
    lose_everything(cluster, namespace)
    assert identity(cluster) != own
    assert _in_aws(ec2, namespace) == before

    emulator.forget_calls()
    cluster.create_namespace(namespace)
    suites.run("restore", backup)
    for name in CLAIMS[1:]:
        assert team.ready(name)["publicIp"] == addresses[name]
    team.phase("at-rest", "Stopped")
    pools.ready("shared")
    for name in LEASES:
        assert leases.ready(name) == leased[name]
    for pool in cluster.all("spotpools", namespace):
        pools.look_again(pool["metadata"]["name"], "after-restore")

    assert identity(cluster) == own
    assert _in_aws(ec2, namespace) == before
    assert not _uids(cluster, namespace) & uids, "the objects are not new"
    made = {name: n for name, n in emulator.calls().items() if _makes_or_ends(name)}
    assert made == {}, "nothing is bought, and nothing ended"

    # The deletion of a restored object ends what the object has adopted.
    cluster.delete_claims(namespace)
    for name in LEASES:
        leases.end(name)
    pools.delete("shared")
    until("everything to end", lambda: not ec2.live(namespace), 120)


def _work(team: Platform, pools: Pools) -> None:
    """Workspaces with and without a home, one of them stopped, and two leases."""
    home: dict[str, Any] = {"home": {"sizeGiB": 1}, "capacityType": "Spot"}
    team.claim("with-home", **home)
    team.claim("at-rest", **home)
    team.claim("without-home")
    pools.apply("shared", parameters=WARM)
    leases = Leases(team.cluster, team.namespace)
    for name in LEASES:
        leases.ask(name)
    for name in CLAIMS:
        team.ready(name)
    team.claim("at-rest", **home, lifecycle={"state": "Stopped"})
    team.phase("at-rest", "Stopped")
    for name in LEASES:
        leases.ready(name)
    pools.ready("shared")


def _in_aws(ec2: Ec2, namespace: str) -> dict[str, Any]:
    """What costs money or holds work."""
    return {
        "instances": sorted(one["InstanceId"] for one in ec2.live(namespace)),
        "volumes": {
            one["VolumeId"]: sorted(a["InstanceId"] for a in one["Attachments"])
            for one in ec2.homes(namespace)
        },
        "groups": sorted(one["GroupId"] for one in ec2.groups(namespace)),
    }


def _uids(cluster: Cluster, namespace: str) -> set[str]:
    kinds = ["spotpools", "spotleases", "gpudevworkspaceclaims"]
    found = [one for kind in kinds for one in cluster.all(kind, namespace)]
    return {one["metadata"]["uid"] for one in found}


def _makes_or_ends(operation: str) -> bool:
    return not operation.startswith(READS) and operation != "AssumeRole"
