"""A push creates an instance, and a revert ends it."""

import time
import urllib.error
from datetime import datetime

import pytest

from environment.cluster import CLAIMS, Cluster, condition
from environment.objects import Object
from environment.ec2 import Ec2
from environment.platform import Platform
from environment.waiting import until
from gitops.argo import ArgoCd
from gitops.git import Repository
from gitops.repositories import claim

TEAM = "team-vision"
APPROVED = "argocd.argoproj.io/deletion-approved"
CONFIRMED = "argocd.argoproj.io/sync-options: Prune=confirm,Delete=confirm"
# Seconds that count as a quick start of a workspace elsewhere.
FIELD = 300


def test_a_pushed_claim_is_a_machine_long_before_anybody_asks(
    cluster: Cluster,
    team: Platform,
    workspaces: Repository,
    argocd: ArgoCd,
    ec2: Ec2,
) -> None:
    workspaces.write("workspaces/alice-vision/claim.yaml", claim("alice-vision"))
    pushed = workspaces.push("A workspace for alice")
    until("the claim", lambda: cluster.get(CLAIMS, "alice-vision", team.namespace), 120)
    status = team.ready("alice-vision", seconds=120)
    argocd.await_health("ws.vision.alice-vision", "Healthy")
    healthy = time.time()

    application = cluster.get("application", "ws.vision.alice-vision", "argocd")
    found = team.workspace("alice-vision")
    (instance,) = ec2.live(team.namespace)
    assert instance["InstanceId"] == status["instanceId"]
    hops = {
        "Application made": _moment(application, "metadata", "creationTimestamp"),
        "sync begun": _moment(application, "status", "operationState", "startedAt"),
        "claim applied": _moment(found, "metadata", "creationTimestamp"),
        "instance launched": instance["LaunchTime"].timestamp(),
        "claim Ready": _parsed(condition(found, "Ready")["lastTransitionTime"]),
        "Argo CD says Healthy": healthy,
    }
    print(f"\nafter `git push` (whole seconds but for the last):")
    for hop, moment in hops.items():
        print(f"  {hop:<22} {moment - pushed:5.1f} s")
    assert healthy - pushed < FIELD / 5


def test_a_broken_claim_holds_up_no_other_one(
    team: Platform, workspaces: Repository, argocd: ArgoCd
) -> None:
    refused = claim("refused", region="mars")
    unknown = claim("unknown", instanceKind="g4dn.xlarge")
    workspaces.write("workspaces/refused/claim.yaml", refused)
    workspaces.write("workspaces/unknown/claim.yaml", unknown)
    garbled = claim("garbled").replace("spec:", "spec: [")
    workspaces.write("workspaces/garbled/claim.yaml", garbled)
    workspaces.write("workspaces/sound/claim.yaml", claim("sound"))
    workspaces.push("Three mistakes and a workspace")
    until(
        "the sound claim",
        lambda: team.cluster.get(CLAIMS, "sound", team.namespace),
        120,
    )
    team.ready("sound", seconds=120)

    def said(name: str) -> str:
        status = argocd.application(f"ws.vision.{name}").get("status", {})
        conditions = status.get("conditions") or []
        operation = status.get("operationState") or {}
        resources = (operation.get("syncResult") or {}).get("resources") or []
        parts = [*conditions, operation, *resources]
        return " ".join(part.get("message", "") for part in parts)

    until("the unknown field's name", lambda: "instanceKind" in said("unknown"), 60)
    until("the refused value", lambda: "region" in said("refused"), 60)
    until("what is no YAML", lambda: "claim.yaml" in said("garbled"), 60)
    # Argo CD sees the Ready claim a moment after the claim's owner does.
    argocd.await_health("ws.vision.sound", "Healthy", seconds=60)

    # Argo CD applies a corrected commit without a manual sync.
    workspaces.write("workspaces/unknown/claim.yaml", claim("unknown"))
    workspaces.push("Mend it")
    until(
        "the mended claim",
        lambda: team.cluster.get(CLAIMS, "unknown", team.namespace),
        180,
    )


def test_a_revert_ends_the_machine_after_a_confirmation_and_keeps_the_home(
    cluster: Cluster, team: Platform, workspaces: Repository, argocd: ArgoCd
) -> None:
    notebook = claim("notebook", placement="Cluster", home={"sizeGiB": 1})
    notebook = notebook.replace(
        "  namespace: team-vision\n",
        f"  namespace: team-vision\n  annotations:\n    {CONFIRMED}\n",
    )
    workspaces.write("workspaces/notebook/claim.yaml", notebook)
    workspaces.push("A notebook with a home")
    name = "ws.vision.notebook"
    until("the claim", lambda: cluster.get(CLAIMS, "notebook", team.namespace), 120)
    team.ready("notebook", seconds=180)
    homes = {home["metadata"]["uid"] for home in _homes(cluster, team)}
    assert len(homes) == 1

    workspaces.revert()
    until(
        "Argo CD to ask for a confirmation",
        lambda: argocd.application(name)["metadata"].get("deletionTimestamp"),
    )
    assert team.workspace("notebook")["metadata"].get("deletionTimestamp") is None
    assert team.status("notebook")["phase"] == "Ready"

    member = argocd.of_member("vision")
    assert member.health(name), "a member does not see the team's Applications"
    assert member.is_refused(lambda: member.update(name, TEAM))
    # The team's Application has the team's Namespace, and is not for members to end.
    with pytest.raises(urllib.error.HTTPError):
        member.confirm_deletion(TEAM, TEAM)
    of_team = argocd.application(TEAM)
    assert APPROVED not in of_team["metadata"].get("annotations", {})
    member.confirm_deletion(TEAM, name)
    until(
        "the claim to be gone",
        lambda: cluster.get(CLAIMS, "notebook", team.namespace) is None,
        120,
    )
    until(
        "its pods to be gone",
        lambda: not cluster.all(
            "pods", team.namespace, "platform.acme.io/cluster-workspace=gpuws-notebook"
        ),
    )
    assert {home["metadata"]["uid"] for home in _homes(cluster, team)} == homes
    for home in _homes(cluster, team):
        cluster.kubectl("delete", "pvc", home["metadata"]["name"], "-n", team.namespace)


def _homes(cluster: Cluster, team: Platform) -> list[Object]:
    homes = cluster.all("pvc", team.namespace)
    return [home for home in homes if home["metadata"]["name"].startswith("home-")]


def _moment(document: Object | None, *path: str) -> float:
    value: object = document
    for key in path:
        assert isinstance(value, dict), f"no {'.'.join(path)}"
        value = value[key]
    return _parsed(str(value))


def _parsed(moment: str) -> float:
    return datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp()
