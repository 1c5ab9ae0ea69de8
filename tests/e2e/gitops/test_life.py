"""Stops, extensions, resumes and interruptions, while selfHeal and prune are on."""

from itertools import groupby

from environment.cluster import CLAIMS, Cluster
from environment.ec2 import Ec2
from environment.emulator import Emulator
from environment.platform import Platform
from environment.waiting import until
from gitops.argo import ArgoCd
from gitops.git import Repository
from gitops.repositories import claim
from lifecycle.life import EXTEND, RESUME, later, now, written

NAME = "life"
APPLICATION = f"ws.vision.{NAME}"
REPORT = "gpu.platform.acme.io:activity"


def test_limits_idle_stops_and_interruptions_are_no_business_of_argo_cd(
    cluster: Cluster,
    team: Platform,
    workspaces: Repository,
    argocd: ArgoCd,
    ec2: Ec2,
    emulator: Emulator,
) -> None:
    def commit(message: str, **lifecycle: str) -> None:
        workspaces.write(
            f"workspaces/{NAME}/claim.yaml", claim(NAME, lifecycle=lifecycle)
        )
        workspaces.push(message)

    def annotate(key: str, value: str) -> None:
        cluster.kubectl(
            *("annotate", CLAIMS, NAME, "-n", team.namespace),
            *("--overwrite", f"{key}={value}"),
        )

    def rests(phase: str) -> None:
        argocd.await_health(APPLICATION, "Suspended", seconds=90)
        assert team.status(NAME)["phase"] == phase
        assert ec2.live(team.namespace) == []

    def runs() -> str:
        argocd.await_health(APPLICATION, "Healthy", seconds=90)
        instance: str = team.status(NAME)["instanceId"]
        return instance

    def syncs(expected: int) -> None:
        application = argocd.application(APPLICATION)
        assert application["status"]["sync"]["status"] == "Synced"
        assert argocd.operations(APPLICATION) == expected

    commit("A workspace for half a minute", maxLifetime="30s")
    until("the Application", lambda: argocd.application(APPLICATION), 60)
    with argocd.watched(APPLICATION) as seen:
        runs()
        rests("Expired")
        syncs(1)

        annotate(RESUME, "monday")
        runs()
        natural = team.status(NAME)["lifecycle"]["stopsAt"]
        annotate(EXTEND, later(45))
        until(
            "the extension",
            lambda: team.status(NAME)["lifecycle"].get("stopsAt", "") > natural,
        )
        rests("Expired")
        syncs(1)

        # The commit prolongs the same run.
        commit(
            "For ten minutes, unless nobody is there",
            maxLifetime="10m",
            stopAfterIdle="5s",
        )
        instance = runs()
        until("the machine to be unused for long enough", lambda: _is_old(team), 60)
        report = f"v1 at={written(now())} ssh=none job=none gpu=absent kernel=absent"
        ec2.client.create_tags(
            Resources=[instance], Tags=[{"Key": REPORT, "Value": report}]
        )
        rests("Stopped")
        assert team.status(NAME)["lifecycle"]["stoppedBecause"] == "Idle"
        syncs(2)

        annotate(RESUME, "tuesday")
        lost = runs()
        emulator.terminate(lost)
        until(
            "another instance",
            lambda: team.status(NAME).get("instanceId") not in (None, lost)
            and argocd.health(APPLICATION) == "Healthy",
            120,
        )
        syncs(2)
    health = [one.health for one in seen]
    print(" ".join(health))
    assert "Degraded" not in health
    # After a commit the claim may show the status of the previous run for a moment,
    # until Crossplane has reconciled the new spec. The same state may then show twice.
    settled = (state for state in health if state in ("Healthy", "Suspended"))
    runs_and_rests = [state for state, _ in groupby(settled)]
    assert runs_and_rests == ["Healthy", "Suspended"] * 3 + ["Healthy"]


def test_a_member_stops_extends_and_starts_a_workspace_by_buttons(
    cluster: Cluster, team: Platform, workspaces: Repository, argocd: ArgoCd, ec2: Ec2
) -> None:
    name, application = "buttons", "ws.vision.buttons"
    workspaces.write(f"workspaces/{name}/claim.yaml", claim(name))
    workspaces.push("A workspace for buttons")
    until("the Application", lambda: argocd.application(application), 60)
    argocd.await_health(application, "Healthy", seconds=120)
    member = argocd.of_member("vision")

    member.run(application, team.namespace, name, "stop")
    argocd.await_health(application, "Suspended", seconds=90)
    at_rest = team.status(name)
    assert (at_rest["phase"], at_rest["lifecycle"]["stoppedBecause"]) == (
        "Stopped",
        "Requested",
    )
    assert ec2.live(team.namespace) == []

    member.run(application, team.namespace, name, "resume")
    argocd.await_health(application, "Healthy", seconds=120)
    assert len(ec2.live(team.namespace)) == 1
    # selfHeal has nothing to revert: git names neither annotation.
    assert argocd.application(application)["status"]["sync"]["status"] == "Synced"
    assert argocd.operations(application) == 1

    stranger = argocd.of_member("audio")
    assert stranger.is_refused(
        lambda: stranger.run(application, team.namespace, name, "stop")
    )


def _is_old(team: Platform) -> bool:
    """Whether the software was installed more than 6 s ago, which exceeds `stopAfterIdle`."""
    ready = team.status(NAME)["lifecycle"].get("readyAt")
    return bool(ready) and ready < later(-6)
