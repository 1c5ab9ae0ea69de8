"""With selfHeal and prune on, Argo CD and the controllers do not fight."""

from typing import Any

import yaml

from environment.cluster import Cluster
from environment.ec2 import Ec2
from environment.emulator import Emulator
from environment.platform import Platform
from environment.waiting import until
from gitops.argo import ArgoCd
from gitops.git import Repository
from gitops.repositories import ROOT, claim


def test_a_workspaces_life_plays_through_without_a_sync_fight(
    cluster: Cluster,
    team: Platform,
    workspaces: Repository,
    argocd: ArgoCd,
    ec2: Ec2,
    emulator: Emulator,
) -> None:
    name = "ws.vision.peace"
    # selfHeal undoes edits only of fields that git has, so this claim names its type.
    workspaces.write(
        "workspaces/peace/claim.yaml", claim("peace", instanceType="g4dn.xlarge")
    )
    workspaces.push("A workspace")
    until("the Application", lambda: argocd.application(name), 60)
    argocd.await_health(name, "Healthy", seconds=120)
    assert argocd.operations(name) == 1

    # The provider replaces a lost instance without a sync.
    lost = team.status("peace")["instanceId"]
    emulator.terminate(lost)
    until(
        "another instance",
        lambda: team.status("peace").get("instanceId") not in (None, lost)
        and argocd.health(name) == "Healthy",
        120,
    )
    # Crossplane composes the workspace's pool with its size. Crossplane undoes an edit
    # of the pool by hand, and Argo CD does not sync.
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

    # Argo CD undoes an edit of the claim by hand, with one sync.
    cluster.kubectl(
        *["patch", "gpuws", "peace", "-n", team.namespace, "--type=merge", "-p"],
        '{"spec": {"parameters": {"instanceType": "g5.xlarge"}}}',
    )
    until("selfHeal", lambda: argocd.operations(name) == 2)

    def instance_type() -> str:
        asked: str = team.workspace("peace")["spec"]["parameters"]["instanceType"]
        return asked

    until("what git says", lambda: instance_type() == "g4dn.xlarge")
    argocd.await_health(name, "Healthy", seconds=120)
    assert (argocd.operations(name), instance_type()) == (2, "g4dn.xlarge")

    # A commit with another instance type causes one sync.
    workspaces.write(
        "workspaces/peace/claim.yaml", claim("peace", instanceType="g5.xlarge")
    )
    workspaces.push("A larger one")
    until(
        "the larger machine",
        lambda: team.status("peace").get("instanceType") == "g5.xlarge"
        and team.status("peace").get("phase") == "Ready",
        180,
    )
    until("one machine", lambda: len(ec2.live(team.namespace)) == 1, 60)
    argocd.await_health(name, "Healthy", seconds=120)
    assert argocd.operations(name) == 3


def test_a_pool_is_resized_by_a_commit_and_by_nobody_else(
    cluster: Cluster,
    team: Platform,
    platform_repository: Repository,
    argocd: ArgoCd,
    ec2: Ec2,
    emulator: Emulator,
) -> None:
    name = "gpu-workspaces"
    pool = yaml.safe_load((ROOT / "examples/pools/shared.yaml").read_text())
    pool["metadata"] = {
        "name": "shared",
        "namespace": team.namespace,
        "annotations": {"argocd.argoproj.io/sync-wave": "6"},
    }
    sizes = pool["spec"]["forProvider"]["size"] = {"minimum": 1, "maximum": 2}
    began = argocd.operations(name)
    platform_repository.write("crossplane/pool.yaml", yaml.safe_dump(pool))
    platform_repository.push("A pool of one")
    until("one instance", lambda: len(ec2.live(team.namespace)) == 1, 120)
    argocd.await_health(name, "Healthy", seconds=120)

    sizes["minimum"] = 2
    platform_repository.write("crossplane/pool.yaml", yaml.safe_dump(pool))
    platform_repository.push("Two of them")
    until("two instances", lambda: len(ec2.live(team.namespace)) == 2, 120)
    argocd.await_health(name, "Healthy", seconds=120)
    # The provider replaces a lost instance. Argo CD does not sync.
    emulator.terminate(ec2.live(team.namespace)[0]["InstanceId"])
    until(
        "the replacement",
        lambda: len([one for one in ec2.live(team.namespace) if running(one)]) == 2,
        120,
    )
    argocd.await_health(name, "Healthy", seconds=120)
    assert argocd.operations(name) == began + 2
    assert argocd.application(name)["status"]["sync"]["status"] == "Synced"

    platform_repository.remove("crossplane/pool.yaml")
    platform_repository.push("No pool")
    # The platform's Application does not prune. A person decides on each deletion.
    until(
        "OutOfSync",
        lambda: argocd.application(name)["status"]["sync"]["status"] == "OutOfSync",
        60,
    )
    assert len(ec2.live(team.namespace)) == 2
    cluster.kubectl(
        *["delete", "spotpool", "shared", "-n", team.namespace, "--timeout=60s"]
    )
    assert ec2.live(team.namespace) == []


def running(instance: dict[str, Any]) -> bool:
    return bool(instance["State"]["Name"] == "running")
