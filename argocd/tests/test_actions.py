"""The action by which members confirm a deletion, run by Argo CD's own program."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

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


def offered(form: Path, resource: engine.Resource) -> str:
    """Whether Argo CD shows the action to people, and whether they can choose it."""
    listed = engine.command(form, "list-actions", resource)
    assert listed.returncode == 0, listed.stderr
    rows = [line.split() for line in listed.stdout.splitlines()]
    disabled = {row[0]: row[1] for row in rows if len(row) == 2}.get(ACTION)
    return {None: "hidden", "true": "disabled", "false": "enabled"}[disabled]


def test_the_button_is_there_when_nothing_waits(form: Path) -> None:
    running = {"operationState": {"phase": "Running"}}
    alive = {"deletionTimestamp": None}
    assert offered(form, application()) == "enabled"
    assert offered(form, application(metadata=alive, status=running)) == "enabled"
    assert offered(form, application(metadata=alive)) == "disabled"
    assert offered(form, application(status={"resources": []})) == "disabled"
    assert offered(form, application(metadata={"labels": None})) == "hidden"
