"""On-demand workspaces of our own provider: AWS does not take their instances back."""

import pytest

from environment.ec2 import Ec2
from environment.emulator import Emulator
from environment.objects import Object
from environment.platform import Platform
from environment.waiting import until


def test_a_claim_on_demand_is_an_instance_that_aws_does_not_take_back(
    platform: Platform, ec2: Ec2
) -> None:
    platform.claim("alice", capacityType="OnDemand")
    status = platform.ready("alice")
    assert status["capacityType"] == "OnDemand"
    (instance,) = ec2.live(platform.namespace)
    assert instance["InstanceId"] == status["instanceId"]
    assert "InstanceLifecycle" not in instance
    # The workspace has no home. The claim says before the first stop what a stop deletes.
    platform.condition("alice", "ConfigResolved", "True", "each stop deletes")


def test_a_stop_ends_the_instance_on_demand_and_keeps_its_home(
    platform: Platform, ec2: Ec2
) -> None:
    wish = {"capacityType": "OnDemand", "home": {"sizeGiB": 10}}
    platform.claim("alice", **wish)
    before = platform.ready("alice")
    platform.claim("alice", **wish, lifecycle={"state": "Stopped"})
    platform.phase("alice", "Stopped")
    assert ec2.live(platform.namespace) == []
    (home,) = ec2.homes(platform.namespace)
    assert home["VolumeId"] == before["home"]["volumeId"]
    platform.claim("alice", **wish, lifecycle={"state": "Running"})
    after = platform.ready("alice")
    assert after["home"]["volumeId"] == before["home"]["volumeId"]
    (home,) = ec2.homes(platform.namespace)
    assert [one["InstanceId"] for one in home["Attachments"]] == [after["instanceId"]]


def test_a_workspace_on_spot_becomes_one_on_demand_without_a_gap(
    platform: Platform, ec2: Ec2
) -> None:
    platform.claim("alice", capacityType="Spot")
    spot = platform.ready("alice")["instanceId"]
    platform.claim("alice", capacityType="OnDemand")

    def is_changed() -> Object | None:
        live = {
            one["InstanceId"]: one["State"]["Name"]
            for one in ec2.live(platform.namespace)
        }
        assert "running" in live.values(), "no instance serves the owner"
        status = platform.status("alice")
        is_other = status.get("instanceId") not in (None, spot)
        return status if is_other and len(live) == 1 else None

    status = until("the instance on demand alone", is_changed, 120)
    assert status["capacityType"] == "OnDemand"


@pytest.mark.thorough
@pytest.mark.alone
def test_a_type_without_capacity_on_demand_is_replaced_by_the_next_one(
    platform: Platform, ec2: Ec2, emulator: Emulator
) -> None:
    emulator.fault(
        "CreateFleet",
        code="InsufficientInstanceCapacity",
        match={"MarketType": "on-demand", "InstanceType": "g6.xlarge"},
    )
    platform.claim(
        "alice",
        capacityType="OnDemand",
        instanceType="g6.xlarge",
        instanceTypes=["g6.2xlarge"],
    )
    assert platform.ready("alice", seconds=90)["instanceType"] == "g6.2xlarge"
    (instance,) = ec2.live(platform.namespace)
    assert instance["InstanceType"] == "g6.2xlarge"
