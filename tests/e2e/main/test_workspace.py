"""A claim becomes a running spot instance, and its deletion leaves nothing behind."""

from pathlib import Path

import pytest
import yaml

from environment.cluster import CLAIMS, Cluster, condition
from environment.objects import Refused
from environment.ec2 import CLUSTER, Ec2, networks, tags
from environment.emulator import Emulator
from environment.platform import PARAMETERS, Platform
from environment.pools import USAGES, Pools
from environment.waiting import until

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_a_claim_is_a_running_spot_instance_as_it_was_asked_for(
    platform: Platform, ec2: Ec2
) -> None:
    platform.claim("alice-vision")
    status = platform.ready("alice-vision")

    assert status["phase"] == "Ready"
    assert status["ssh"] == f"ssh developer@{status['publicIp']}"
    (instance,) = ec2.live(platform.namespace)
    assert instance["InstanceId"] == status["instanceId"]
    assert instance["State"]["Name"] == "running"
    assert instance["InstanceType"] == "g4dn.xlarge"
    assert instance["InstanceLifecycle"] == "spot"
    assert instance["Placement"]["AvailabilityZone"] == status["zone"]
    assert instance["PublicIpAddress"] == status["publicIp"]
    assert instance["ImageId"] == status["image"]["id"] == _catalogued_image()
    assert instance["MetadataOptions"]["HttpTokens"] == "required"
    assert instance["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
    # The account's open reservations belong to other teams.
    reservations = instance["CapacityReservationSpecification"]
    assert reservations == {"CapacityReservationPreference": "none"}
    seen = tags(instance)
    assert seen["owner"] == "alice"
    assert seen["workspace"] == f"{platform.namespace}/alice-vision"
    assert seen[CLUSTER]


def test_what_is_billed_or_open_carries_tags_and_no_more_than_asked(
    platform: Platform, ec2: Ec2
) -> None:
    platform.claim("alice")
    status = platform.ready("alice")

    (volume,) = ec2.volumes(platform.namespace)
    assert volume["Encrypted"] and volume["VolumeType"] == "gp3"
    (group,) = ec2.groups(platform.namespace)
    ssh, members = sorted(group["IpPermissions"], key=lambda p: -p.get("FromPort", -1))
    assert (ssh["FromPort"], ssh["ToPort"], ssh["IpProtocol"]) == (22, 22, "tcp")
    assert [r["CidrIp"] for r in ssh["IpRanges"]] == ["203.0.113.0/24"]
    assert members["IpRanges"] == [] and members["IpProtocol"] == "-1"
    assert [p["GroupId"] for p in members["UserIdGroupPairs"]] == [group["GroupId"]]
    instance = ec2.instance(status["instanceId"])
    assert [g["GroupId"] for g in instance["SecurityGroups"]] == [group["GroupId"]]


def test_a_claim_without_networks_launches_nothing_until_it_names_one(
    platform: Platform, ec2: Ec2
) -> None:
    platform.claim("alice", ssh={})
    field = "spec.parameters.ssh.allowedCidrs"
    platform.condition("alice", "AccessReady", "False", "NoNetworks")
    status = platform.status("alice")
    assert status["phase"] == "Failed" and field in status["message"]
    assert ec2.live(platform.namespace) == []
    platform.claim("alice")
    platform.ready("alice")
    assert condition(platform.workspace("alice"), "AccessReady")["status"] == "True"


def test_a_machine_whose_last_network_is_taken_away_runs_on_and_is_not_ready(
    platform: Platform, ec2: Ec2
) -> None:
    platform.claim("alice")
    before = platform.ready("alice")["instanceId"]
    platform.claim("alice", ssh={})
    platform.condition("alice", "Ready", "False")
    platform.condition("alice", "AccessReady", "False", "NoNetworks")
    (instance,) = ec2.live(platform.namespace)
    assert instance["InstanceId"] == before

    def is_closed() -> bool:
        (group,) = ec2.groups(platform.namespace)
        permissions = group["IpPermissions"]
        v6 = [one for p in permissions for one in p.get("Ipv6Ranges", [])]
        return v6 == [] and all(p["IpRanges"] == [] for p in permissions)

    until("nothing to be open", is_closed)


def test_the_machine_has_the_owners_keys_in_tags_and_one_opencv(
    platform: Platform, ec2: Ec2
) -> None:
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFrBvnSTWqDz alice@desk"
    platform.claim("alice", ssh={**PARAMETERS["ssh"], "publicKeys": [key]})
    status = platform.ready("alice")

    text = ec2.user_data(status["instanceId"])
    assert text.startswith("#cloud-config\n") and len(text) <= 10_240
    document = yaml.safe_load(text)
    (developer,) = (u for u in document["users"] if u["name"] == "developer")
    catalogued = _catalogue()["owners"]["alice"]["publicKeys"]
    assert "ssh_authorized_keys" not in developer and "ssh-ed25519" not in text
    bare = [" ".join(key.split()[:2]) for key in [*catalogued, key]]
    assert ec2.authorized_keys(status["instanceId"]) == bare
    files = {file["path"]: file["content"] for file in document["write_files"]}
    requirements = files["/etc/gpu-workspace/requirements.txt"].splitlines()
    (opencv,) = [r for r in requirements if r.startswith("opencv")]
    assert opencv.startswith("opencv-python-headless==4.8.0.76 --hash=sha256:")


def test_deleting_a_claim_leaves_nothing_in_ec2_and_nothing_in_the_cluster(
    platform: Platform, ec2: Ec2, cluster: Cluster
) -> None:
    # No other test uses this name. The list below has composites of all namespaces.
    name = "leaver"
    platform.claim(name)
    status = platform.ready(name)
    platform.delete(name)

    assert ec2.live(platform.namespace) == []
    assert ec2.instance(status["instanceId"])["State"]["Name"] == "terminated"
    assert ec2.groups(platform.namespace) == []
    assert ec2.volumes(platform.namespace) == []
    assert cluster.all("spotpools", platform.namespace) == []
    assert cluster.all(USAGES, platform.namespace) == []
    composites = cluster.kubectl("get", cluster.composites, "-A", "-o", "name")
    assert name not in composites


def test_claims_of_one_name_in_two_namespaces_do_not_mix(
    cluster: Cluster, platform: Platform, ec2: Ec2
) -> None:
    other = Platform(cluster, f"{platform.namespace}-b")
    cluster.create_namespace(other.namespace, owner="bob")
    try:
        platform.claim("alice")
        # The catalogue has no key of bob.
        key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFrBvnSTWqDz bob@desk"
        other.claim(
            "alice", owner="bob", ssh={**PARAMETERS["ssh"], "publicKeys": [key]}
        )
        first, second = platform.ready("alice"), other.ready("alice")
        assert first["instanceId"] != second["instanceId"]
        for team, status, owner in ((platform, first, "alice"), (other, second, "bob")):
            (instance,) = ec2.live(team.namespace)
            assert instance["InstanceId"] == status["instanceId"]
            assert tags(instance)["owner"] == owner
        platform.delete("alice")
        assert ec2.live(platform.namespace) == []
        assert len(ec2.live(other.namespace)) == 1
    finally:
        cluster.delete_claims(other.namespace)
        cluster.delete_namespace(other.namespace)


def test_an_instance_that_aws_takes_back_is_replaced_and_not_called_ready(
    platform: Platform, ec2: Ec2, emulator: Emulator
) -> None:
    # No other test that runs beside this one has this type.
    instance_type = "g4dn.2xlarge"
    platform.claim("alice", instanceType=instance_type)
    lost = platform.ready("alice")["instanceId"]
    # EC2 launches no other instance until Crossplane has shown the loss. Crossplane would
    # else skip the state between two instances, because it shows the latest one only.
    failing = emulator.fault(
        "CreateFleet", code="InternalError", match={"InstanceType": instance_type}
    )
    emulator.interrupt(lost)

    def is_interrupted() -> bool:
        # Crossplane writes the fields of a claim's status before its conditions.
        found = platform.workspace("alice")
        is_not_ready = condition(found, "Ready").get("status") == "False"
        return is_not_ready and found["status"].get("phase") == "Interrupted"

    until(
        "phase Interrupted with Ready=False",
        is_interrupted,
        instead=lambda: platform.workspace("alice").get("status"),
    )
    emulator.end_fault(failing)

    def is_replaced() -> str | None:
        status = platform.status("alice")
        renewed = status.get("instanceId") not in (None, lost)
        return status["instanceId"] if renewed and status["phase"] == "Ready" else None

    replacement = until("another instance", is_replaced)
    (instance,) = ec2.live(platform.namespace)
    assert instance["InstanceId"] == replacement


@pytest.mark.alone
def test_without_spot_capacity_the_workspace_comes_on_demand(
    platform: Platform, ec2: Ec2, emulator: Emulator
) -> None:
    emulator.fault(
        "CreateFleet",
        code="InsufficientInstanceCapacity",
        match={"MarketType": "spot", "InstanceType": "g6.2xlarge"},
    )
    platform.claim("alice", instanceType="g6.2xlarge")
    status = platform.ready("alice", seconds=90)
    assert status["capacityType"] == "OnDemand"
    (instance,) = ec2.live(platform.namespace)
    assert "InstanceLifecycle" not in instance


@pytest.mark.alone
def test_a_reached_quota_is_named_on_the_claim_with_the_limit_to_raise(
    platform: Platform, ec2: Ec2, emulator: Emulator
) -> None:
    emulator.fault("CreateFleet", code="MaxSpotInstanceCountExceeded")
    platform.claim("alice", capacityType="Spot", instanceType="g6e.xlarge")
    seen = platform.condition("alice", "ComputeReady", "False", "Quota")
    assert "L-3819A6DF" in seen["message"]
    assert platform.status("alice")["phase"] == "Failed"
    assert ec2.live(platform.namespace) == []
    # AWS raises the quota. docs/troubleshooting.md says how to try again at once.
    emulator.clear_faults()
    pool = platform.pool()["metadata"]["name"]
    Pools(platform.cluster, platform.namespace).look_again(pool, "raised")
    platform.ready("alice")


@pytest.mark.thorough
@pytest.mark.alone
def test_an_idle_pool_asks_ec2_for_nothing_but_the_shared_look(
    platform: Platform, emulator: Emulator, cluster: Cluster
) -> None:
    platform.claim("alice")
    platform.ready("alice")
    pool = platform.pool()
    version = pool["metadata"]["resourceVersion"]
    emulator.forget_calls()
    looks = until(
        "the observer's next looks",
        lambda: emulator.calls().get("DescribeInstances", 0) >= 2,
        seconds=90,
    )
    assert looks
    allowed = {
        "GetCallerIdentity",
        "DescribeInstances",
        "DescribeSecurityGroups",
        "DescribeSecurityGroupRules",
    }
    assert set(emulator.calls()) <= allowed
    assert platform.pool()["metadata"]["resourceVersion"] == version


def test_a_widened_security_group_is_narrowed_again(
    platform: Platform, ec2: Ec2
) -> None:
    platform.claim("alice")
    platform.ready("alice")
    (group,) = ec2.groups(platform.namespace)
    ec2.client.authorize_security_group_ingress(
        GroupId=group["GroupId"],
        IpPermissions=[
            {
                "IpProtocol": "tcp",
                "FromPort": 22,
                "ToPort": 22,
                "IpRanges": [{"CidrIp": "0.0.0.0/0"}],
            }
        ],
    )

    def is_narrow() -> bool:
        (seen,) = ec2.groups(platform.namespace)
        return networks(seen) == PARAMETERS["ssh"]["allowedCidrs"]

    until("the rule to be taken away", is_narrow)


def test_the_region_of_a_claim_cannot_change(platform: Platform) -> None:
    platform.claim("alice")
    platform.ready("alice")
    try:
        platform.claim("alice", region="us-west-2")
    except Refused as refusal:
        assert "region is immutable" in str(refusal)
    else:
        raise AssertionError("the change was accepted")


def test_the_claim_in_the_examples_is_the_smallest_one() -> None:
    document = yaml.safe_load((EXAMPLES / "workspaces/alice-vision.yaml").read_text())
    assert document["spec"]["parameters"] == PARAMETERS
    assert CLAIMS.startswith(document["kind"].lower())


def _catalogue() -> dict:  # type: ignore[type-arg]
    text = (EXAMPLES / "platform/catalogue.yaml").read_text()
    catalogue: dict = yaml.safe_load(text)["data"]  # type: ignore[type-arg]
    return catalogue


def _catalogued_image() -> str:
    image: str = _catalogue()["images"]["us-east-1"]["default"]["id"]
    return image
