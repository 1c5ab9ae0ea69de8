"""On-demand workspaces of provider-aws and of our own provider, in one run: the time from
the claim to the owner's login, and the calls of EC2's API while nothing changes."""

import os
import time
from collections import Counter
from collections.abc import Callable
from statistics import median

import pytest

from environment.emulator import Emulator
from environment.objects import Object
from lifecycle.life import now
from lifecycle.machine import Machine
from upbound.conftest import ACCESS_KEY

ON_DEMAND = {"capacityType": "OnDemand"}
SOON = 300
ROUNDS = int(os.environ.get("ROUNDS", "3"))
# Seconds in which the calls at rest are counted: eight polls of provider-aws as this suite
# runs it (platform/runtime.yaml).
WINDOW, POLL = 120, 15
# Seconds between two polls of provider-aws by default.
DEFAULT_POLL = 600


@pytest.mark.alone
def test_our_own_provider_lets_an_owner_in_no_later_than_provider_aws(
    machine: Callable[[str], Machine],
) -> None:
    took: dict[str, list[float]] = {"ProviderAws": [], "SpotPool": []}
    for _ in range(ROUNDS):
        for provider, seconds in took.items():
            workspace = machine(provider)
            begun = now()
            workspace.commit({}, **ON_DEMAND)
            workspace.logged_in(SOON)
            seconds.append((now() - begun).total_seconds())
            workspace.platform.delete(workspace.name, SOON)
    for provider, seconds in took.items():
        listed = ", ".join(f"{one:.1f}" for one in seconds)
        print(f"{provider}: {median(seconds):.1f} s from claim to login ({listed})")
    assert median(took["SpotPool"]) <= median(took["ProviderAws"])


@pytest.mark.alone
def test_each_provider_looks_at_a_workspace_that_rests(
    machine: Callable[[str], Machine], emulator: Emulator
) -> None:
    for provider in ("ProviderAws", "SpotPool"):
        workspace = machine(provider)
        workspace.name = f"resting-{provider.lower()}"
        workspace.commit({}, **ON_DEMAND)
        workspace.logged_in(SOON)
    # This is the time that is measured, not a wait for something.
    time.sleep(WINDOW)
    of_all = _counted(emulator.latest(WINDOW))
    theirs = _counted(emulator.latest(WINDOW, ACCESS_KEY))
    ours = of_all - theirs
    # The agents on the instances tag their own instances.
    del ours["CreateTags"]
    a_poll = theirs.total() / (WINDOW / POLL)
    print(f"provider-aws: {a_poll:.1f} calls a poll, {dict(theirs)}")
    print(
        f"provider-aws, poll of ten minutes: {a_poll * 3600 / DEFAULT_POLL:.0f} an hour"
    )
    print(
        f"provider-gpu-spot: {ours.total() * 3600 / WINDOW:.0f} an hour, {dict(ours)}"
    )
    assert theirs and ours
    writes = {name for name in theirs | ours if not name.startswith("Describe")}
    assert writes <= {"GetConsoleOutput"}, "something is written although all rest"


def _counted(calls: list[Object]) -> Counter[str]:
    return Counter(one["operation"] for one in calls if one["service"] == "ec2")
