"""A workspace on demand: an instance that AWS does not interrupt, with its home."""

import json
from typing import Any

import pytest

from environment.cluster import Cluster, condition
from environment.objects import Object
from environment.ec2 import Ec2, tags
from environment.emulator import Emulator
from environment.platform import PARAMETERS, Platform
from environment.platform import claim as manifest
from environment.variants import composition
from environment.waiting import until

COMPOSITION = "gpudevworkspaces-provider-aws"
ON_DEMAND = {"capacityType": "OnDemand", "home": {"sizeGiB": 20}}
SSH = {"allowedCidrs": ["203.0.113.0/24", "198.51.100.7/32"]}
# upbound's provider waits ten seconds or more before and after every step.
SOON = 240
# The attachment, the instance and the group are deleted one after the other. Crossplane
# checks every 30 seconds whether it may delete the next one.
GONE = 300

MANAGED = (
    "instances.ec2.aws.m.upbound.io,securitygroups.ec2.aws.m.upbound.io,"
    "securitygrouprules.ec2.aws.m.upbound.io,ebsvolumes.ec2.aws.m.upbound.io,"
    "volumeattachments.ec2.aws.m.upbound.io,instancestates.ec2.aws.m.upbound.io,"
    "usages.protection.crossplane.io"
)


def claim(platform: Platform, name: str, **parameters: Any) -> None:
    platform.claim(name, COMPOSITION, **{**ON_DEMAND, "ssh": SSH, **parameters})


def home_of(ec2: Ec2, status: Object) -> Object:
    return ec2.volume(status["home"]["volumeId"])


def attached_to(volume: Object) -> list[str]:
    return [one["InstanceId"] for one in volume["Attachments"]]


def ssh_networks(ec2: Ec2, namespace: str) -> list[str]:
    (group,) = ec2.groups(namespace)
    (ssh,) = group["IpPermissions"]
    assert (ssh["IpProtocol"], ssh["FromPort"], ssh["ToPort"]) == ("tcp", 22, 22)
    return sorted(one["CidrIp"] for one in ssh["IpRanges"])


def test_a_claim_is_a_running_instance_on_demand_with_its_home_attached(
    platform: Platform, ec2: Ec2
) -> None:
    claim(platform, "alice")
    status = platform.ready("alice", SOON)

    assert status["phase"] == "Ready"
    assert status["capacityType"] == "OnDemand"
    (instance,) = ec2.live(platform.namespace)
    assert instance["InstanceId"] == status["instanceId"]
    assert instance["State"]["Name"] == "running"
    assert "InstanceLifecycle" not in instance
    assert instance["PublicIpAddress"] == status["publicIp"]
    assert instance["Placement"]["AvailabilityZone"] == status["zone"]
    assert instance["MetadataOptions"]["HttpTokens"] == "required"
    assert instance["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
    assert tags(instance)["owner"] == "alice"
    assert tags(instance)["workspace"] == f"{platform.namespace}/alice"
    assert ec2.user_data(instance["InstanceId"]).startswith("#cloud-config\n")

    (group,) = ec2.groups(platform.namespace)
    assert [one["GroupId"] for one in instance["SecurityGroups"]] == [group["GroupId"]]
    assert ssh_networks(ec2, platform.namespace) == sorted(SSH["allowedCidrs"])
    (egress,) = group["IpPermissionsEgress"]
    assert egress["IpProtocol"] == "-1"

    home = home_of(ec2, status)
    assert home["Encrypted"] and (home["VolumeType"], home["Size"]) == ("gp3", 20)
    assert home["AvailabilityZone"] == status["zone"]
    assert attached_to(home) == [status["instanceId"]]
    assert home["Attachments"][0]["DeleteOnTermination"] is False
    root = next(
        one["Ebs"]["VolumeId"]
        for one in instance["BlockDeviceMappings"]
        if one["DeviceName"] == instance["RootDeviceName"]
    )
    assert ec2.volume(root)["Encrypted"]


def test_a_removed_key_is_removed_from_the_running_instance(
    platform: Platform, ec2: Ec2
) -> None:
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFrBvnSTWqDz"
    claim(platform, "alice", ssh={"publicKeys": [f"{key} alice@desk"], **SSH})
    instance = platform.ready("alice", SOON)["instanceId"]
    assert key in ec2.authorized_keys(instance)
    options = ec2.instance(instance)["MetadataOptions"]
    assert options["InstanceMetadataTags"] == "enabled"

    claim(platform, "alice")
    until(
        "the key to leave the tags",
        lambda: key not in ec2.authorized_keys(instance),
        60,
    )
    assert [one["InstanceId"] for one in ec2.live(platform.namespace)] == [instance]


def test_a_deleted_claim_leaves_the_home_alone_and_nothing_else(
    platform: Platform, cluster: Cluster, ec2: Ec2
) -> None:
    claim(platform, "alice")
    status = platform.ready("alice", SOON)
    platform.delete("alice", GONE)

    assert ec2.live(platform.namespace) == []
    assert ec2.groups(platform.namespace) == []
    (home,) = ec2.volumes(platform.namespace)
    assert home["VolumeId"] == status["home"]["volumeId"]
    assert (home["State"], home["Attachments"]) == ("available", [])
    assert tags(home)["owner"] == "alice"
    left = cluster.kubectl("get", MANAGED, "-n", platform.namespace, "-o", "name")
    assert left == ""


def test_a_policy_that_deletes_homes_leaves_nothing_at_all(
    platform: Platform, cluster: Cluster, ec2: Ec2, deleting_homes: str
) -> None:
    document = manifest(
        platform.namespace, "alice", {**PARAMETERS, **ON_DEMAND, "ssh": SSH}
    )
    document["spec"]["compositionRef"] = {"name": deleting_homes}
    cluster.apply(document)
    status = platform.ready("alice", SOON)
    assert attached_to(home_of(ec2, status)) == [status["instanceId"]]
    platform.delete("alice", GONE)
    assert ec2.volumes(platform.namespace) == []
    assert ec2.live(platform.namespace) == []
    assert ec2.groups(platform.namespace) == []


def test_an_instance_that_somebody_terminates_is_replaced_and_the_home_follows(
    platform: Platform, ec2: Ec2, emulator: Emulator
) -> None:
    claim(platform, "alice")
    before = platform.ready("alice", SOON)
    emulator.terminate(before["instanceId"])

    # The provider observes the instance every 15 seconds. Then the claim shows the end.
    platform.condition("alice", "Ready", "False")
    seen = platform.condition("alice", "ComputeReady", "False", before["instanceId"])
    assert "is gone" in seen["message"]

    def is_replaced() -> Object | None:
        status = platform.status("alice")
        is_ready = condition(platform.workspace("alice"), "Ready")["status"] == "True"
        if is_ready:
            # A claim must not be Ready if its instance does not run.
            state = ec2.instance(status["instanceId"])["State"]["Name"]
            assert state == "running", f"Ready on an instance that is {state}"
        renewed = status.get("instanceId") not in (None, before["instanceId"])
        return status if is_ready and renewed else None

    status = until("another instance", is_replaced, SOON)
    assert status["home"]["volumeId"] == before["home"]["volumeId"]
    assert attached_to(home_of(ec2, status)) == [status["instanceId"]]
    (instance,) = ec2.live(platform.namespace)
    assert instance["InstanceId"] == status["instanceId"]


def test_another_type_moves_the_home_to_an_instance_that_runs_before_the_old_one_goes(
    platform: Platform, ec2: Ec2
) -> None:
    claim(platform, "alice")
    before = platform.ready("alice", SOON)
    old = before["instanceId"]
    claim(platform, "alice", instanceType="g4dn.2xlarge")

    def is_renewed() -> Object | None:
        live = {
            one["InstanceId"]: one["State"]["Name"]
            for one in ec2.live(platform.namespace)
        }
        others = [state for one, state in live.items() if one != old]
        if old not in live:
            assert "running" in others, "the old instance went before the new one ran"
        status = platform.status("alice")
        renewed = status.get("instanceId") not in (None, old) and len(live) == 1
        return status if renewed and status["phase"] == "Ready" else None

    status = until("the other type", is_renewed, GONE)
    (instance,) = ec2.live(platform.namespace)
    assert instance["InstanceType"] == "g4dn.2xlarge"
    assert instance["Placement"]["AvailabilityZone"] == before["zone"]
    assert status["home"]["volumeId"] == before["home"]["volumeId"]
    assert attached_to(home_of(ec2, status)) == [instance["InstanceId"]]


def test_a_network_taken_out_of_a_claim_is_shut_out(
    platform: Platform, ec2: Ec2
) -> None:
    claim(platform, "alice")
    before = platform.ready("alice", SOON)
    claim(platform, "alice", ssh={"allowedCidrs": ["198.51.100.7/32"]})
    until(
        "the other network to be shut out",
        lambda: ssh_networks(ec2, platform.namespace) == ["198.51.100.7/32"],
        SOON,
    )
    assert platform.ready("alice", SOON)["instanceId"] == before["instanceId"]


@pytest.mark.alone
def test_a_reached_quota_is_named_on_the_claim_and_stays_the_same_message(
    platform: Platform, ec2: Ec2, emulator: Emulator
) -> None:
    emulator.fault("RunInstances", code="VcpuLimitExceeded")
    claim(platform, "alice")
    # The provider may report only the second failure, a minute later.
    seen = platform.condition("alice", "ComputeReady", "False", "Quota", SOON)
    assert "L-DB2E81BA" in seen["message"]
    assert "RequestID" not in seen["message"]
    assert ec2.live(platform.namespace) == []
    emulator.forget_calls()
    until(
        "another attempt",
        lambda: emulator.calls().get("RunInstances", 0) > 0,
        seconds=180,
    )
    again = platform.condition("alice", "ComputeReady", "False", "Quota")
    assert again["message"] == seen["message"]
    assert again["lastTransitionTime"] == seen["lastTransitionTime"]
    emulator.clear_faults()
    platform.ready("alice", SOON)


def test_a_stopped_instance_is_the_same_one_when_it_runs_again(
    platform: Platform, cluster: Cluster, ec2: Ec2
) -> None:
    claim(platform, "alice")
    before = platform.ready("alice", SOON)
    instance_id = before["instanceId"]

    claim(platform, "alice", lifecycle={"state": "Stopped"})
    stopped = platform.phase("alice", "Stopped", seconds=SOON)
    assert stopped["lifecycle"]["stoppedBecause"] == "State"
    assert ec2.instance(instance_id)["State"]["Name"] == "stopped"
    assert attached_to(home_of(ec2, before)) == [instance_id]

    claim(platform, "alice", lifecycle={"state": "Running"})
    status = platform.ready("alice", SOON)
    assert status["instanceId"] == instance_id
    assert ec2.instance(instance_id)["State"]["Name"] == "running"
    assert attached_to(home_of(ec2, status)) == [instance_id]
    until(
        "nothing to hold the instance's power",
        lambda: cluster.kubectl(
            *("get", "instancestates.ec2.aws.m.upbound.io"),
            *("-n", platform.namespace, "-o", "name"),
        )
        == "",
        SOON,
    )


def test_a_run_that_is_over_turns_its_instance_off(
    platform: Platform, ec2: Ec2
) -> None:
    claim(platform, "alice", lifecycle={"maxLifetime": "2m"})
    before = platform.ready("alice", 110)
    stopped = platform.phase("alice", "Expired", seconds=SOON)
    assert ec2.instance(before["instanceId"])["State"]["Name"] == "stopped"
    assert "ssh" not in stopped


def test_ten_workspaces_of_provider_aws_stay_when_the_policy_names_it_no_more(
    platform: Platform, cluster: Cluster, ec2: Ec2
) -> None:
    names = [f"w{number}" for number in range(10)]
    policy = f"upgraded-{platform.namespace}"
    of = f"provider-aws/{COMPOSITION}"
    composition(cluster, policy, {}, of=of)
    wish = {"capacityType": "OnDemand", "ssh": SSH}
    for name in names:
        platform.claim(name, policy, **wish)
    before = {name: platform.ready(name, GONE)["instanceId"] for name in names}
    old = revisions(cluster, platform.namespace)

    composition(cluster, policy, {"onDemand": None}, of=of)
    until(
        "every workspace to follow the new policy",
        lambda: revisions(cluster, platform.namespace).isdisjoint(old),
        seconds=120,
    )
    # A new workspace is one of our own provider: the new policy is in force.
    platform.claim("new", policy, **wish)
    new = platform.ready("new", SOON)["instanceId"]
    assert len(cluster.all("spotpools.gpu.platform.acme.io", platform.namespace)) == 1
    after = {name: platform.ready(name)["instanceId"] for name in names}
    assert after == before
    live = {one["InstanceId"] for one in ec2.live(platform.namespace)}
    live |= {one["InstanceId"] for one in Ec2(ec2.region).live(platform.namespace)}
    assert live == {*before.values(), new}


def revisions(cluster: Cluster, namespace: str) -> set[str]:
    """The revisions that the namespace's workspaces follow."""
    listed = cluster.kubectl(
        *("get", cluster.composites, "-o", "json"),
        *("-l", f"crossplane.io/claim-namespace={namespace}"),
    )
    items: list[Object] = json.loads(listed)["items"]
    return {one["spec"]["compositionRevisionRef"]["name"] for one in items}
