"""A changed claim gets its next instance before its first one ends."""

from environment.ec2 import Ec2
from environment.platform import Platform
from environment.waiting import until


def test_another_type_runs_before_the_first_machine_goes(
    platform: Platform, ec2: Ec2
) -> None:
    platform.claim("alice")
    first = platform.ready("alice")["instanceId"]
    platform.claim("alice", instanceType="g5.xlarge")

    def replaced() -> bool:
        running = [
            instance
            for instance in ec2.live(platform.namespace)
            if instance["State"]["Name"] == "running"
        ]
        assert running, "nothing runs: the first machine went before the next one"
        # Crossplane deletes the first pool, then writes the composite's status, then
        # the claim's. The claim may still name the first instance when that ends.
        return platform.status("alice").get("instanceType") == "g5.xlarge"

    until("the machine to be replaced", replaced)
    second = platform.ready("alice")["instanceId"]
    assert second != first

    def alone() -> bool:
        live = ec2.live(platform.namespace)
        return [one["InstanceId"] for one in live] == [second]

    until("the first machine to go", alone)
    until(
        "its pool to go",
        lambda: len(platform.cluster.all("spotpools", platform.namespace)) == 1,
    )


def test_going_back_to_the_first_type_keeps_its_machine(
    platform: Platform, ec2: Ec2, huge: str
) -> None:
    platform.claim("alice", composition=huge)
    first = platform.ready("alice")["instanceId"]
    # EC2 has no such instance type, so the replacement never comes.
    platform.claim("alice", composition=huge, instanceType="g4dn.huge")
    platform.condition("alice", "ComputeReady", "False", "serves until")
    assert platform.status("alice")["instanceId"] == first
    platform.claim("alice", composition=huge)
    assert platform.ready("alice")["instanceId"] == first
    assert [one["InstanceId"] for one in ec2.live(platform.namespace)] == [first]
    until(
        "the other pool to go",
        lambda: len(platform.cluster.all("spotpools", platform.namespace)) == 1,
    )
