"""The actions of members, run by Argo CD's own program."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import engine

ACTION = "confirm-deletion"
APPROVED = "argocd.argoproj.io/deletion-approved"


def application(**changes: Any) -> engine.Resource:
    """An Application of a claim that waits for the confirmation of its deletion."""
    metadata = {
        "name": "ws.vision.alice",
        "namespace": "argocd",
        "labels": {"platform.acme.io/confirmed-by": "members"},
        "deletionTimestamp": "2026-01-01T00:00:00Z",
    }
    claim = {"kind": "GpuDevWorkspaceClaim", "requiresDeletionConfirmation": True}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": metadata | changes.get("metadata", {}),
        "spec": {"project": "team-vision"},
        "status": {"resources": [claim]} | changes.get("status", {}),
    }


def test_a_confirmation_changes_something_else_or_does_not_count(form: Path) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    ran = engine.command(form, "run-action", application(), ACTION)
    assert ran.returncode == 0, ran.stderr
    changed = re.findall("^[<>] (.*)$", ran.stdout, re.MULTILINE)
    heading, written = changed
    assert heading.strip() == "annotations:"
    key, _, time = written.strip().partition(": ")
    assert key == APPROVED
    # Argo CD reads the time as RFC 3339, and counts one after the deletion's begin.
    time = time.strip('"')
    assert re.fullmatch(r"\d{4}(-\d\d){2}T\d\d(:\d\d){2}Z", time), time
    assert before < datetime.fromisoformat(time) < datetime.now(UTC)


def test_a_member_confirms_the_end_of_the_teams_namespace(form: Path) -> None:
    of_platform = application(metadata={"labels": {"platform.acme.io/team": "vision"}})
    ran = engine.command(form, "run-action", of_platform, ACTION)
    assert ran.returncode != 0
    assert APPROVED not in ran.stdout
    assert "only the platform team" in ran.stderr, ran.stderr
    unlabelled = application(metadata={"labels": None})
    assert engine.command(form, "run-action", unlabelled, ACTION).returncode != 0


def offers(form: Path, resource: engine.Resource) -> dict[str, str]:
    """The actions that Argo CD shows to people, and whether they can choose each."""
    listed = engine.command(form, "list-actions", resource)
    assert listed.returncode == 0, listed.stderr
    rows = [line.split() for line in listed.stdout.splitlines()]
    disabled = dict(row for row in rows if len(row) == 2)
    disabled.pop("NAME", None)  # of the heading
    states = {"true": "disabled", "false": "enabled"}
    return {name: states[value] for name, value in disabled.items()}


def offered(form: Path, resource: engine.Resource) -> str:
    return offers(form, resource).get(ACTION, "hidden")


def test_the_button_is_there_when_nothing_waits(form: Path) -> None:
    running = {"operationState": {"phase": "Running"}}
    alive = {"deletionTimestamp": None}
    assert offered(form, application()) == "enabled"
    assert offered(form, application(metadata=alive, status=running)) == "enabled"
    assert offered(form, application(metadata=alive)) == "disabled"
    assert offered(form, application(status={"resources": []})) == "disabled"
    assert offered(form, application(metadata={"labels": None})) == "hidden"


def claim(**status: Any) -> engine.Resource:
    return {
        "apiVersion": "platform.acme.io/v1alpha1",
        "kind": "GpuDevWorkspaceClaim",
        "metadata": {"name": "alice", "namespace": "team-vision"},
        "spec": {"parameters": {"owner": "alice"}},
        "status": status,
    }


def from_now(hours: int) -> str:
    at = datetime.now(UTC) + timedelta(hours=hours)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def ends(hours: int, **life: Any) -> engine.Resource:
    """A claim that runs, and ends after that many hours."""
    run = {"stopsAt": from_now(hours), "stopsBecause": "MaxLifetime"}
    limits = {"maxExtension": "24h"}
    return claim(phase="Ready", lifecycle=run | {"limits": limits} | life)


def test_a_person_can_choose_what_has_no_effect_on_a_workspace(form: Path) -> None:
    def enabled(resource: engine.Resource) -> set[str]:
        states = offers(form, resource)
        assert states.keys() == {"resume", "extend", "stop"}, states
        return {name for name, state in states.items() if state == "enabled"}

    assert enabled(ends(2)) == {"stop", "extend"}
    assert enabled(ends(13)) == {"stop"}
    assert enabled(ends(2, limits={})) == {"stop"}
    assert enabled(ends(2, stopsBecause="Idle")) == {"stop"}
    for phase in ("Provisioning", "Queued", "Interrupted", "Failed"):
        assert enabled(claim(phase=phase)) == {"stop"}, phase
    assert enabled(claim(phase="Stopping")) == set()
    assert enabled(claim()) == set()
    for phase, because in (
        ("Stopped", "Idle"),
        ("Stopped", "Requested"),
        ("Expired", "MaxLifetime"),
    ):
        at_rest = claim(phase=phase, lifecycle={"stoppedBecause": because})
        assert enabled(at_rest) == {"resume"}, because
    # Git says `state: Stopped`, so only a commit starts this workspace again.
    by_git = claim(phase="Stopped", lifecycle={"stoppedBecause": "State"})
    assert enabled(by_git) == set()


@pytest.mark.parametrize(
    ("action", "annotation", "hours"),
    [("resume", "resume", 0), ("extend", "extend-until", 12), ("stop", "stop", 0)],
)
def test_an_action_writes_something_else_than_its_annotation(
    form: Path, action: str, annotation: str, hours: int
) -> None:
    for zone in ("UTC", "America/New_York"):
        ran = engine.command(form, "run-action", ends(2), action, zone=zone)
        assert ran.returncode == 0, ran.stderr
        heading, written = re.findall("^[<>] (.*)$", ran.stdout, re.MULTILINE)
        assert heading.strip() == "annotations:"
        key, _, time = written.strip().partition(": ")
        assert key == f"platform.acme.io/{annotation}"
        after = datetime.fromisoformat(time.strip('"')) - datetime.now(UTC)
        assert abs(after - timedelta(hours=hours)) < timedelta(minutes=1), time


def test_another_kind_has_the_buttons_of_a_workspace(form: Path) -> None:
    for kind in ("DevUser", "GpuDevWorkspace", "WorkspaceFlavor"):
        other = ends(2) | {"kind": kind}
        assert offers(form, other) == {}, kind
        ran = engine.command(form, "run-action", other, "stop")
        assert "Actions are not configured" in ran.stdout, kind
