"""The health of a workspace in Argo CD, at every step of its life."""

import pytest

from environment.cluster import CLAIMS, Cluster
from environment.ec2 import Ec2
from environment.emulator import Emulator
from environment.platform import Platform
from environment.pools import Pools
from environment.waiting import until
from gitops.argo import ArgoCd
from gitops.git import Repository
from gitops.repositories import claim

# What EC2 says when the limit of a market is reached.
LIMITS = {"spot": "MaxSpotInstanceCountExceeded", "on-demand": "VcpuLimitExceeded"}


def test_a_workspace_is_never_healthy_before_its_instance_runs(
    cluster: Cluster,
    team: Platform,
    workspaces: Repository,
    argocd: ArgoCd,
    emulator: Emulator,
) -> None:
    emulator.fault("CreateFleet", code="InsufficientInstanceCapacity")
    workspaces.write("workspaces/alice/claim.yaml", claim("alice"))
    with argocd.watched("ws.vision.alice") as seen:
        workspaces.push("A workspace without capacity")
        until(
            "no capacity",
            lambda: cluster.get(CLAIMS, "alice", team.namespace)
            and "apacity" in team.status("alice").get("message", ""),
            120,
        )
        argocd.await_health("ws.vision.alice", "Progressing")
        emulator.clear_faults()
        # The test asks Argo CD first. A claim that Argo CD calls Healthy must be Ready.
        until(
            "Healthy",
            lambda: argocd.health("ws.vision.alice") == "Healthy"
            and (team.status("alice")["phase"] == "Ready" or pytest.fail("too early")),
            seconds=300,
        )
    # The Application is Missing before Argo CD applies the claim.
    healths = [one.health for one in seen]
    assert [h for h in healths if h not in ("Missing", "Unknown")] == [
        "Progressing",
        "Healthy",
    ], seen


def test_a_quota_is_degraded_with_the_code_to_raise(
    team: Platform, workspaces: Repository, argocd: ArgoCd, emulator: Emulator
) -> None:
    for market, code in LIMITS.items():
        emulator.fault("CreateFleet", code=code, match={"MarketType": market})
    workspaces.write("workspaces/alice/claim.yaml", claim("alice"))
    workspaces.push("A workspace beyond the quota")
    until("the Application", lambda: argocd.application("ws.vision.alice"), 60)
    argocd.await_health("ws.vision.alice", "Degraded", seconds=120)
    node = argocd.resource("ws.vision.alice", "GpuDevWorkspaceClaim")
    assert "L-" in node["health"]["message"], node
    # AWS raises the quota. docs/troubleshooting.md says how to try again at once. Otherwise
    # the offerings of the account rest for a quarter of an hour.
    emulator.clear_faults()
    pool = team.pool()["metadata"]["name"]
    Pools(team.cluster, team.namespace).look_again(pool, "raised")
    argocd.await_health("ws.vision.alice", "Healthy", seconds=120)


def test_an_interruption_is_progress_and_a_refused_edit_is_degraded(
    team: Platform,
    workspaces: Repository,
    argocd: ArgoCd,
    ec2: Ec2,
    emulator: Emulator,
) -> None:
    workspaces.write("workspaces/alice/claim.yaml", claim("alice"))
    workspaces.push("A workspace")
    until("the Application", lambda: argocd.application("ws.vision.alice"), 60)
    argocd.await_health("ws.vision.alice", "Healthy", seconds=120)
    lost = team.status("alice")["instanceId"]
    with argocd.watched("ws.vision.alice", lambda: team.status("alice")) as seen:
        emulator.interrupt(lost)
        until("its end", lambda: team.status("alice").get("instanceId") != lost)
        until(
            "another instance",
            lambda: team.status("alice").get("phase") == "Ready"
            and argocd.health("ws.vision.alice") == "Healthy",
            120,
        )
    # Crossplane's claim controller writes the phase before the claim's condition Ready
    # (claim/reconciler.go, claim/syncer_ssa.go). So the condition may become False for a
    # moment after the workspace is Ready again.
    healths = [one.health for one in seen]
    assert set(healths) == {"Healthy", "Progressing"}, seen
    after = seen[healths.index("Progressing") + 1 :]
    assert all(one.is_ready_on_another(lost) for one in after), seen
    argocd.await_health("ws.vision.alice", "Healthy")

    workspaces.write(
        "workspaces/alice/claim.yaml", claim("alice", instanceType="p5.48xlarge")
    )
    workspaces.push("More than the policy allows")
    argocd.await_health("ws.vision.alice", "Degraded")
    (instance,) = ec2.live(team.namespace)
    assert instance["InstanceType"] == "g4dn.xlarge"
    workspaces.revert()
    argocd.await_health("ws.vision.alice", "Healthy")


def test_queued_and_stopped_workspaces_are_suspended(
    team: Platform, workspaces: Repository, argocd: ArgoCd
) -> None:
    for name in ("first", "second"):
        workspaces.write(
            f"workspaces/{name}/claim.yaml",
            claim(name, placement="Cluster", flavor="gpu"),
        )
        workspaces.push(f"A GPU for the {name}")
        until(
            "the Application", lambda n=name: argocd.application(f"ws.vision.{n}"), 60
        )
        wanted = "Healthy" if name == "first" else "Suspended"
        argocd.await_health(f"ws.vision.{name}", wanted, seconds=180)
    assert team.status("second")["phase"] == "Queued"

    workspaces.write(
        "workspaces/first/claim.yaml",
        claim(
            "first", placement="Cluster", flavor="gpu", lifecycle={"state": "Stopped"}
        ),
    )
    workspaces.push("Stop the first")
    argocd.await_health("ws.vision.first", "Suspended", seconds=120)
    assert team.status("first")["phase"] == "Stopped"
    argocd.await_health("ws.vision.second", "Healthy", seconds=180)
