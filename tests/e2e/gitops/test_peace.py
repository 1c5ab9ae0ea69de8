"""selfHeal and prune are on: Argo CD and the controllers do not fight."""

from environment.cluster import Cluster
from environment.ec2 import Ec2
from environment.emulator import Emulator
from environment.platform import Platform
from environment.waiting import until
from gitops.argo import ArgoCd
from gitops.git import Repository
from gitops.repositories import claim


def test_a_workspaces_life_plays_through_without_a_sync_fight(
    cluster: Cluster,
    team: Platform,
    workspaces: Repository,
    argocd: ArgoCd,
    ec2: Ec2,
    emulator: Emulator,
) -> None:
    name = "vision-alice"
    workspaces.write("workspaces/alice/claim.yaml", claim("alice"))
    workspaces.push("A workspace")
    until("the Application", lambda: argocd.application(name), 60)
    argocd.await_health(name, "Healthy", seconds=120)
    assert argocd.operations(name) == 1

    # A lost instance, and its replacement.
    lost = team.status("alice")["instanceId"]
    emulator.terminate(lost)
    until(
        "another instance",
        lambda: team.status("alice").get("instanceId") not in (None, lost)
        and argocd.health(name) == "Healthy",
        120,
    )
    # The workspace's own pool, whose size is Crossplane's to hold: an edit by hand
    # is taken back by it, and is none of Argo CD's business.
    pool = team.pool()["metadata"]["name"]
    cluster.kubectl(
        *["patch", "spotpool", pool, "-n", team.namespace, "--type=merge", "-p"],
        '{"spec": {"forProvider": {"size": {"maximum": 3}}}}',
    )
    until(
        "Crossplane to take it back",
        lambda: team.pool()["spec"]["forProvider"]["size"]["maximum"] != 3,
        120,
    )
    assert len(ec2.live(team.namespace)) == 1
    assert argocd.operations(name) == 1
    assert argocd.application(name)["status"]["sync"]["status"] == "Synced"

    # What somebody edits in the claim is taken back, once.
    cluster.kubectl(
        *["patch", "gpuws", "alice", "-n", team.namespace, "--type=merge", "-p"],
        '{"spec": {"parameters": {"instanceType": "g5.xlarge"}}}',
    )
    until("selfHeal", lambda: argocd.operations(name) == 2)
    argocd.await_health(name, "Healthy", seconds=120)
    found = team.workspace("alice")["spec"]["parameters"]["instanceType"]
    assert found == "g4dn.xlarge"

    # Another size, by a commit: one sync.
    workspaces.write(
        "workspaces/alice/claim.yaml", claim("alice", instanceType="g5.xlarge")
    )
    workspaces.push("A larger one")
    until(
        "the larger machine",
        lambda: team.status("alice").get("instanceType") == "g5.xlarge"
        and team.status("alice").get("phase") == "Ready",
        180,
    )
    until("one machine", lambda: len(ec2.live(team.namespace)) == 1, 60)
    argocd.await_health(name, "Healthy", seconds=120)
    assert argocd.operations(name) == 3
