"""The health in Argo CD after each response of the function.

Review goldens/workspaces.yaml, which has all of them, like code. UPDATE_GOLDENS=1
writes it.
"""

import os
from pathlib import Path

import pytest
import yaml

import engine
from composites import Answer, is_workspace, names
from engine import Health

GOLDEN = Path(__file__).parent / "goldens/workspaces.yaml"
HEADER = """\
# What Argo CD says of every case of function/tests/cases: at once and, where that
# differs, after an hour.
"""

Shown = dict[str, tuple[Health, Health]]


@pytest.fixture(scope="module")
def composites(component: Path) -> Shown:
    """The health of each case's composite at once, and after an hour."""
    resources = [Answer(name).composite(age) for name in names() for age in engine.AGES]
    found = [known(health) for health in engine.assess_all(component, resources)]
    pairs = zip(found[::2], found[1::2], strict=True)
    return dict(zip(names(), pairs, strict=True))


def known(health: Health | None) -> Health:
    assert health is not None
    return health


def test_people_are_told_something_else_than_before(composites: Shown) -> None:
    shown = {
        name: str(at_once) if at_once == later else [str(at_once), str(later)]
        for name, (at_once, later) in composites.items()
    }
    text = HEADER + yaml.safe_dump(shown, width=1000, allow_unicode=True)
    if os.environ.get("UPDATE_GOLDENS"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_a_workspace_is_healthy_although_nobody_can_log_in(composites: Shown) -> None:
    healthy = {
        name
        for name, pair in composites.items()
        if is_workspace(name) and any(health.status == "Healthy" for health in pair)
    }
    assert len(healthy) > 20
    for name in healthy:
        answer = Answer(name)
        assert answer.is_ready() and answer.status()["phase"] == "Ready", name


def test_a_workspace_that_is_ready_is_not_healthy(composites: Shown) -> None:
    for name, (at_once, _) in composites.items():
        resolved = next(c for c in Answer(name).own if c["type"] == "ConfigResolved")
        holds = resolved["status"] == "STATUS_CONDITION_TRUE"
        if holds and Answer(name).is_ready():
            assert at_once.status == "Healthy", name


def test_what_a_person_must_change_is_not_degraded_or_without_reason(
    composites: Shown,
) -> None:
    refused = [name for name in names() if Answer(name).refusal]
    assert len(refused) > 40
    for name in refused:
        expected = Health("Degraded", str(Answer(name).refusal))
        assert composites[name] == (expected, expected), name


def test_nothing_is_said_to_people(composites: Shown) -> None:
    for name, (at_once, later) in composites.items():
        if at_once.status != "Healthy":
            assert at_once.message and later.message, name


def test_a_claim_says_something_else_than_its_composite(
    composites: Shown, component: Path
) -> None:
    # Cases with a fatal result are left out: another test checks their message.
    workspaces = [n for n in names() if is_workspace(n) and not Answer(n).fatal]
    claims = [Answer(name).claim("now") for name in workspaces]
    found = engine.assess_all(component, claims)
    for name, claim in zip(workspaces, map(known, found), strict=True):
        composite = composites[name][0]
        assert claim.status == composite.status, name
        # Crossplane's own condition Ready has another message on a claim.
        if not composite.message.startswith("Ready: "):
            assert claim.message == composite.message, name
