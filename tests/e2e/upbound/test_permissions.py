"""docs/aws/provider-aws.json lets provider-aws do what it does, and nothing more. The
emulator limits the provider's access key to it in the whole suite."""

import pytest

from documents import policies
from environment.cluster import Cluster
from environment.ec2 import Ec2
from environment.emulator import Emulator
from environment.objects import Object
from environment.platform import PARAMETERS, Platform
from environment.platform import claim as manifest
from environment.waiting import until
from upbound.conftest import ACCESS_KEY, PERMISSIONS

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFrBvnSTWqDz"
SOON = 300


@pytest.mark.alone
def test_a_workspaces_whole_life_needs_each_documented_permission_and_no_other(
    platform: Platform,
    cluster: Cluster,
    ec2: Ec2,
    emulator: Emulator,
    deleting_homes: str,
) -> None:
    emulator.forget_calls()

    def wish(networks: list[str], **changes: object) -> None:
        document = manifest(
            platform.namespace,
            "alice",
            {
                **PARAMETERS,
                "capacityType": "OnDemand",
                "home": {"sizeGiB": 20},
                "ssh": {"allowedCidrs": networks, "publicKeys": [f"{KEY} alice@desk"]},
                **changes,
            },
        )
        document["spec"]["compositionRef"] = {"name": deleting_homes}
        cluster.apply(document)

    wish(["203.0.113.0/24"])
    first = platform.ready("alice", SOON)
    # Another network, a larger home, no key: rules, a volume and tags change.
    here = ["198.51.100.7/32"]
    changed: Object = {"home": {"sizeGiB": 21}, "ssh": {"allowedCidrs": here}}
    wish(here, **changed)
    until(
        "the key to leave the tags",
        lambda: not any(
            key.startswith(KEY) for key in ec2.authorized_keys(first["instanceId"])
        ),
        SOON,
    )
    until(
        "the home to grow",
        lambda: ec2.volume(first["home"]["volumeId"])["Size"] == 21,
        SOON,
    )
    wish(here, **changed, lifecycle={"state": "Stopped"})
    platform.phase("alice", "Stopped", seconds=SOON)
    wish(here, **changed)
    platform.ready("alice", SOON)
    # Another type is another instance, to which the home moves.
    wish(here, **changed, instanceType="g4dn.2xlarge")
    until(
        "the other instance",
        lambda: platform.status("alice").get("instanceType") == "g4dn.2xlarge"
        and len(ec2.live(platform.namespace)) == 1,
        SOON,
    )
    platform.ready("alice", SOON)
    platform.delete("alice", SOON)
    assert ec2.live(platform.namespace) == []
    assert ec2.volumes(platform.namespace) == []

    calls = emulator.latest(3600, ACCESS_KEY)
    denied = [one for one in calls if one["status"] == 403]
    # terraform ends a deletion of an instance with a second volume by the launch of another
    # one, without an image: EC2 refuses it to everybody.
    useless = [one for one in denied if "ImageId" not in one["parameters"]]
    assert {one["operation"] for one in useless} <= {"RunInstances"}
    assert [one["operation"] for one in denied if one not in useless] == []
    granted = policies.actions(policies.read(PERMISSIONS))
    called = {f"ec2:{one['operation']}" for one in calls if one["service"] == "ec2"}
    assert granted - called == set(), "granted, and never needed"
    assert called - granted == set(), "called, and not granted"
