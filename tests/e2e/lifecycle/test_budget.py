"""An owner's monthly budget, which the function checks before each launch."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from cluster.conftest import NewUser
from cluster.workspaces import Workspaces
from environment import variants
from environment.cluster import Cluster, condition
from environment.objects import Object
from environment.ec2 import Ec2
from environment.platform import PARAMETERS, claim
from environment.waiting import until

# USD for each GiB and month of a home.
HOME_PRICE = 73.0
# USD per hour of a g4dn.xlarge on demand, and the maximum lifetime of each workspace.
PRICE = 0.5
LIFETIME = "10h"
RUN = PRICE * 10

Owner = Callable[[float], Workspaces]


@pytest.fixture(scope="session")
def counted(cluster: Cluster) -> str:
    """A Composition whose owners have budgets."""
    prices = {
        "prices": {
            "asOf": "2026-11-01",
            "hourlyUsd": {"us-east-1": {"g4dn.xlarge": PRICE}},
            "spotHourlyUsd": None,
            "flavorHourlyUsd": None,
            "volumeGiBMonthUsd": {"us-east-1": HOME_PRICE},
        }
    }
    catalogue = variants.catalogue(cluster, "gpu-workspaces-counted", prices)
    users = {"budgets": {"kind": "GpuDevWorkspace", "everywhere": False}}
    variants.composition(cluster, "devusers-counted", users, of="devusers")
    policy = {
        "catalogue": {"name": catalogue},
        "budgets": {"requireBudget": True},
        "lifecycle": {"maxLifetime": {"maximum": "14d"}},
    }
    return variants.composition(cluster, "counted", policy)


@pytest.fixture
def owner(cluster: Cluster, new_user: NewUser, counted: str) -> Iterator[Owner]:
    """Creates owners with a budget of so many dollars a month."""

    def make(dollars: float) -> Workspaces:
        user = new_user("devusers-counted")
        _budget(cluster, user, dollars)
        return user

    yield make


def test_a_budget_that_is_exactly_reached_runs_and_one_more_does_not(
    owner: Owner, counted: str, ec2: Ec2
) -> None:
    carol = owner(2 * RUN)
    for name in ("first", "second"):
        _claim(carol, name, counted)
        carol.ready(name, seconds=90)
    _claim(carol, "third", counted)
    seen = carol.condition("third", "WithinBudget", "False", "BudgetExceeded")
    needs, left, over = _amounts(seen["message"])
    assert needs == RUN and over == round(needs - left, 2)
    assert 0 <= left < 0.2, "what has run a moment ago is nearly all reserved"
    assert carol.status("third")["phase"] == "Queued"
    assert len(ec2.live(carol.namespace)) == 2


def test_two_claims_at_once_are_not_granted_the_same_money(
    owner: Owner, counted: str, ec2: Ec2
) -> None:
    carol = owner(1.5 * RUN)
    names = ["one", "two"]
    listed: Object = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [_manifest(carol, name, counted) for name in names],
    }
    carol.cluster.apply(listed)
    phases = until(
        "one to run and one to wait",
        lambda: _phases(carol, names, {"Ready", "Queued"}),
        seconds=90,
    )
    assert len(ec2.live(carol.namespace)) == 1
    waiting = names[phases.index("Queued")]
    seen = condition(carol.workspace(waiting), "WithinBudget")
    assert seen["reason"] == "BudgetExceeded", seen


def test_a_raised_budget_lets_who_waits_go_and_a_lowered_one_stops_nothing(
    owner: Owner, counted: str, cluster: Cluster, ec2: Ec2
) -> None:
    carol = owner(RUN)
    _claim(carol, "first", counted)
    runs = carol.ready("first", seconds=90)["instanceId"]
    _claim(carol, "second", counted)
    carol.condition("second", "WithinBudget", "False", "BudgetExceeded")

    _budget(cluster, carol, 2 * RUN)
    carol.ready("second", seconds=90)

    _budget(cluster, carol, 1)
    _claim(carol, "third", counted)
    carol.condition("third", "WithinBudget", "False", "BudgetExceeded")
    assert {carol.status(name)["phase"] for name in ("first", "second")} == {"Ready"}
    assert carol.status("first")["instanceId"] == runs
    assert len(ec2.live(carol.namespace)) == 2


def test_a_refused_edit_keeps_no_run_beyond_its_end_and_its_cost_is_on_the_user(
    owner: Owner, counted: str, cluster: Cluster, ec2: Ec2
) -> None:
    carol = owner(RUN)
    vision = _manifest(carol, "vision", counted)
    parameters = vision["spec"]["parameters"]
    parameters["lifecycle"] = {"maxLifetime": "40s"}
    cluster.apply(vision)
    carol.ready("vision", seconds=90)
    parameters["instanceType"] = "p5.48xlarge"
    cluster.apply(vision)
    carol.condition("vision", "ConfigResolved", "False", "p5.48xlarge")
    until("the machine to end", lambda: ec2.live(carol.namespace) == [], 120)
    cost = carol.phase("vision", "Expired")["cost"]["soFarUsd"]
    assert cost > 0

    def spent() -> float:
        dollars: float = _account(cluster, carol).get("spentUsd", 0)
        return dollars

    until("the cost to be on the user", lambda: spent() >= cost, instead=spent)


def test_the_home_of_a_stopped_workspace_is_on_the_user_and_leaves_less_for_runs(
    owner: Owner, counted: str, cluster: Cluster, ec2: Ec2
) -> None:
    carol = owner(1_000_000)
    size = 100
    stopped = _manifest(carol, "stopped", counted)
    stopped["spec"]["parameters"]["home"] = {"sizeGiB": size}
    cluster.apply(stopped)
    carol.ready("stopped", seconds=90)
    stopped["spec"]["parameters"]["lifecycle"]["state"] = "Stopped"
    cluster.apply(stopped)
    until("the machine to end", lambda: ec2.live(carol.namespace) == [], 120)
    home = carol.phase("stopped", "Stopped")["cost"]["home"]
    assert home["hourlyUsd"] == pytest.approx(size * HOME_PRICE / 730)

    now = datetime.now(UTC)
    end = (now.replace(day=1) + timedelta(days=32)).replace(day=1)
    end = end.replace(hour=0, minute=0, second=0, microsecond=0)
    left = (end - now).total_seconds() / 3600 * home["hourlyUsd"]

    account = lambda: _account(cluster, carol)
    # The home is created some minutes before this test reads the clock.
    until(
        "the home alone to be reserved",
        lambda: account().get("reservedUsd") == pytest.approx(left, abs=5),
        instead=account,
    )
    _budget(cluster, carol, round(left + RUN / 2, 2))
    _claim(carol, "other", counted)
    carol.condition("other", "WithinBudget", "False", "BudgetExceeded")


def test_a_home_that_outlives_its_claim_stays_in_the_budget(
    owner: Owner, counted: str, cluster: Cluster, ec2: Ec2
) -> None:
    erin = owner(1_000_000)
    manifest = _manifest(erin, "first", counted)
    manifest["spec"]["parameters"]["home"] = {"sizeGiB": 100}
    cluster.apply(manifest)
    erin.ready("first", seconds=90)
    volume = erin.phase("first", "Ready")["home"]["volumeId"]
    counts = lambda: [k["homes"] for k in _account(cluster, erin).get("keptHomes", [])]

    cluster.delete_claim("first", erin.namespace, 180)
    until(
        "the home to stay in the budget", lambda: counts() == [[volume]], instead=counts
    )
    assert ec2.volume(volume)["State"] in ("available", "in-use")
    reserved = _account(cluster, erin)["reservedUsd"]
    _budget(cluster, erin, round(reserved + RUN / 2, 2))
    _claim(erin, "second", counted)
    erin.condition("second", "WithinBudget", "False", "BudgetExceeded")

    _budget(cluster, erin, round(reserved + RUN / 2, 2), deleted=[volume])
    erin.ready("second", seconds=90)
    assert counts() == []


def _manifest(user: Workspaces, name: str, composition: str) -> Object:
    parameters = {
        **PARAMETERS,
        "owner": user.owner,
        "lifecycle": {"maxLifetime": LIFETIME},
    }
    document = claim(user.namespace, name, parameters)
    document["spec"]["compositionRef"] = {"name": composition}
    return document


def _claim(user: Workspaces, name: str, composition: str) -> None:
    user.cluster.apply(_manifest(user, name, composition))


def _budget(
    cluster: Cluster, user: Workspaces, dollars: float, deleted: Sequence[str] = ()
) -> None:
    budget = {"monthlyUsd": dollars, "deletedHomes": list(deleted)}
    cluster.kubectl(
        *("patch", "devuser", user.owner, "--type=merge", "-p"),
        json.dumps({"spec": {"budget": budget}}),
    )


def _account(cluster: Cluster, user: Workspaces) -> Object:
    """The budget in the owner's DevUser; empty before the function has written it."""
    found = cluster.get("devusers", user.owner, "default") or {}
    status: Object = found.get("status", {}).get("budget", {})
    return status


def _amounts(message: str) -> tuple[float, float, float]:
    """The dollars that a workspace needs, those that are left, and the difference."""
    found = re.search(
        r"needs ([\d.]+) USD .*?, ([\d.]+) of [\d.]+ USD are left this month: "
        r"([\d.]+) too much",
        message,
    )
    assert found, message
    needs, left, over = (float(number) for number in found.groups())
    return needs, left, over


def _phases(user: Workspaces, names: list[str], wanted: set[str]) -> list[str] | None:
    phases = [user.status(name).get("phase", "") for name in names]
    return phases if set(phases) == wanted else None
