"""A rule of a workspace's own security group, whose name upbound's provider has lost."""

import pytest

from environment.cluster import Cluster
from environment.ec2 import Ec2
from environment.emulator import Emulator
from environment.objects import Object
from environment.platform import Platform
from environment.waiting import until
from upbound.conftest import ACCESS_KEY, PACKAGE
from upbound.test_workspace import SOON, claim, ssh_networks

NAME = "crossplane.io/external-name"
NETWORK, OTHER = "203.0.113.0/24", "198.51.100.7/32"
RULES = "securitygrouprules.ec2.aws.m.upbound.io"


def rule(cluster: Cluster, namespace: str) -> Object:
    (found,) = [
        one
        for one in cluster.all(RULES, namespace)
        if one["spec"]["forProvider"].get("cidrBlocks") == [NETWORK]
    ]
    return found


# It kills the provider.
@pytest.mark.alone
def test_a_rule_that_the_provider_forgot_is_found_and_ends_with_its_network(
    platform: Platform, cluster: Cluster, ec2: Ec2, emulator: Emulator
) -> None:
    claim(platform, "alice")
    platform.ready("alice", SOON)
    forgotten = rule(cluster, platform.namespace)["metadata"]["name"]
    emulator.forget_calls()
    # The provider also knows the name while it runs.
    for pod in cluster.pods(f"provider={PACKAGE}"):
        cluster.kill(pod)
    cluster.kubectl("annotate", RULES, forgotten, "-n", platform.namespace, f"{NAME}-")

    def is_created_again() -> bool:
        calls = emulator.latest(SOON, ACCESS_KEY)
        return any(one["code"] == "InvalidPermission.Duplicate" for one in calls)

    until("the provider to create the rule again", is_created_again, SOON)
    until(
        "the rule to have a name",
        lambda: NAME
        in rule(cluster, platform.namespace)["metadata"].get("annotations", {}),
        SOON,
    )
    platform.ready("alice", SOON)
    assert ssh_networks(ec2, platform.namespace) == sorted([NETWORK, OTHER])

    claim(platform, "alice", ssh={"allowedCidrs": [OTHER]})
    until(
        "the network to be shut out",
        lambda: ssh_networks(ec2, platform.namespace) == [OTHER],
        SOON,
    )
    platform.ready("alice", SOON)
