"""EC2 carries out a call, but its answer never reaches upbound's provider."""

import pytest

from environment.ec2 import Ec2
from environment.emulator import Emulator
from environment.platform import Platform
from upbound.test_workspace import SOON, attached_to, claim, home_of

NETWORK = "203.0.113.0/24"
CREATIONS = [
    "CreateSecurityGroup",
    "AuthorizeSecurityGroupEgress",
    "AuthorizeSecurityGroupIngress",
    "RunInstances",
    "CreateVolume",
    "AttachVolume",
]


# Its faults strike the calls of all workspaces.
@pytest.mark.alone
def test_a_workspace_is_ready_although_each_creation_lost_its_first_answer(
    platform: Platform, ec2: Ec2, emulator: Emulator
) -> None:
    for operation in CREATIONS:
        emulator.fault(operation, effect="lose-reply", times=1)
    claim(platform, "alice", ssh={"allowedCidrs": [NETWORK]})
    # EC2 refuses three creations the second time: of the group, its rules and the
    # attachment. The provider tries each again after a minute.
    status = platform.ready("alice", 2 * SOON)
    assert [one["hits"] for one in emulator.faults()] == [1] * len(CREATIONS)

    (instance,) = ec2.live(platform.namespace)
    assert attached_to(home_of(ec2, status)) == [instance["InstanceId"]]
    (used,) = instance["SecurityGroups"]
    groups = ec2.groups(platform.namespace)
    ways_in = {
        group["GroupId"]: [
            network["CidrIp"]
            for rule in group["IpPermissions"]
            for network in rule["IpRanges"]
        ]
        for group in groups
    }
    assert ways_in.pop(used["GroupId"]) == [NETWORK]
    # EC2 keeps the first security group, whose id the provider never learned. That group
    # has no rule, so EC2 admits no network to it.
    assert list(ways_in.values()) == [[]]
