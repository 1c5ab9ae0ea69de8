"""After a crash or restart at the worst moment, each claim has exactly one instance."""

import os

import pytest

from environment.cluster import SYSTEM, Cluster, is_ready
from environment.ec2 import Ec2, networks
from environment.emulator import Emulator
from environment.platform import Platform
from environment.waiting import until

pytestmark = pytest.mark.alone

PROVIDER = "provider=acme-provider-gpu-spot"
FUNCTION = "function=acme-function-gpu-workspace"

# Each kill takes 20 s: the test waits for a delayed answer and for a new provider.
KILLS = 10 if os.environ.get("THOROUGH") else 1


def test_a_provider_killed_between_launch_and_status_write_launches_once(
    platform: Platform, cluster: Cluster, ec2: Ec2, emulator: Emulator
) -> None:
    for number in range(KILLS):
        name = f"crash-{number}"
        # EC2 launches the instance, and the emulator delays EC2's answer. The provider
        # is killed before it writes the instance into the status.
        emulator.fault("CreateFleet", effect="delay-reply", seconds=8, times=1)
        platform.claim(name)
        until(
            f"EC2 to launch {name}",
            lambda number=number: len(ec2.live(platform.namespace)) == number + 1,
        )
        (pod,) = cluster.pods(PROVIDER)
        pool = _pool_of(cluster, platform.namespace, name)
        assert not pool.get("status", {}).get("atProvider", {}).get("instances")
        cluster.kill(pod)

        status = platform.ready(name, seconds=90)
        live = {i["InstanceId"] for i in ec2.live(platform.namespace)}
        assert len(live) == number + 1, f"{len(live)} instances for {number + 1} claims"
        assert status["instanceId"] in live
    emulator.clear_faults()
    cluster.delete_claims(platform.namespace)
    assert ec2.live(platform.namespace) == []
    assert ec2.groups(platform.namespace) == []


@pytest.mark.thorough
def test_a_lost_answer_of_ec2_does_not_launch_a_second_instance(
    platform: Platform, ec2: Ec2, emulator: Emulator
) -> None:
    emulator.fault("CreateFleet", effect="lose-reply", times=2)
    platform.claim("alice")
    status = platform.ready("alice")
    (instance,) = ec2.live(platform.namespace)
    assert instance["InstanceId"] == status["instanceId"]


@pytest.mark.thorough
def test_restarts_of_function_provider_and_crossplane_change_no_instance(
    platform: Platform, cluster: Cluster, ec2: Ec2, emulator: Emulator
) -> None:
    platform.claim("alice")
    before = platform.ready("alice")["instanceId"]
    emulator.forget_calls()
    cluster.replace_pods(FUNCTION)
    cluster.replace_pods(PROVIDER)
    cluster.kubectl("rollout", "restart", "-n", SYSTEM, "deployment/crossplane")
    cluster.kubectl(
        "rollout", "status", "-n", SYSTEM, "deployment/crossplane", "--timeout=90s"
    )
    # Once this change reaches EC2, Crossplane, the function and the provider have
    # processed the claim again.
    platform.claim("alice", ssh={"allowedCidrs": ["198.51.100.0/24"]})

    def is_open() -> bool:
        (group,) = ec2.groups(platform.namespace)
        return networks(group) == ["198.51.100.0/24"]

    until("the change to reach EC2", is_open, seconds=90)
    until("the claim to be Ready", lambda: is_ready(platform.workspace("alice")))
    (instance,) = ec2.live(platform.namespace)
    assert instance["InstanceId"] == before
    calls = emulator.calls()
    assert "CreateFleet" not in calls and "TerminateInstances" not in calls


@pytest.mark.thorough
def test_a_claim_deleted_while_ec2_is_out_of_reach_is_kept_until_it_is_clean(
    platform: Platform, cluster: Cluster, ec2: Ec2, emulator: Emulator
) -> None:
    platform.claim("alice")
    platform.ready("alice")
    emulator.fault("TerminateInstances", code="UnauthorizedOperation", status=403)
    cluster.kubectl(
        "delete",
        "gpudevworkspaceclaims.platform.acme.io",
        "alice",
        "-n",
        platform.namespace,
        "--wait=false",
    )

    def says_why() -> bool:
        conditions = platform.pool().get("status", {}).get("conditions", [])
        return any("UnauthorizedOperation" in c.get("message", "") for c in conditions)

    until("the pool to say why it stays", says_why)
    assert len(ec2.live(platform.namespace)) == 1
    emulator.clear_faults()
    # The provider retries a denied termination once a minute.
    until("the instance to go", lambda: not ec2.live(platform.namespace), seconds=90)
    until(
        "the claim to go",
        lambda: not cluster.all(
            "gpudevworkspaceclaims.platform.acme.io", platform.namespace
        ),
    )


def _pool_of(cluster: Cluster, namespace: str, claim: str) -> dict:  # type: ignore[type-arg]
    (pool,) = cluster.all("spotpools", namespace, f"crossplane.io/claim-name={claim}")
    return pool
