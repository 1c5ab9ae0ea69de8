"""Many workspaces with deadlines within seconds: about 17 deadlines a second."""

import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from environment.cluster import Cluster
from environment.objects import Object
from environment.ec2 import Ec2
from environment.platform import PARAMETERS, Platform, claim
from environment.pools import operations
from environment.waiting import until
from lifecycle.following import Following
from lifecycle.life import now

WORKSPACES = int(os.environ.get("DEADLINES", "300"))
# The time from the last commit to the first deadline, and from the first to the last
# deadline. On two processors Crossplane reconciles about ten changed claims a second,
# and kubectl applies twenty.
AHEAD = timedelta(minutes=2, seconds=WORKSPACES / 4)
WITHIN = timedelta(minutes=WORKSPACES / 1000)
LATE = 10
# Seconds after the last deadline until all claims show their end. The provider ends an
# instance in time without Crossplane. Crossplane then needs about twenty writes until
# the claim shows it.
TOLD = 300
FUNCTION = "function=acme-function-gpu-workspace"


@pytest.mark.alone
def test_every_one_of_many_deadlines_in_the_same_minute_is_met(
    cluster: Cluster, platform: Platform, composition: str, ec2: Ec2
) -> None:
    names = [f"dev-{number:04}" for number in range(WORKSPACES)]
    with Following(platform.namespace) as lives:
        _commit(cluster, platform, composition, {name: "12h" for name in names})
        started = _all(lives, "startedAt", seconds=2 * WORKSPACES + 120)
        first = now() + AHEAD
        ends = {
            name: first + WITHIN * (number / WORKSPACES)
            for number, name in enumerate(names)
        }
        lifetimes = {
            name: f"{round((ends[name] - started[name]).total_seconds())}s"
            for name in names
        }
        _commit(cluster, platform, composition, lifetimes)
        planned = _await_ends(lives, ends, seconds=(first - now()).total_seconds())
        calls = _calls(cluster)
        left = (first - now() + WITHIN).total_seconds()
        stopped = _all(lives, "stoppedAt", seconds=left + TOLD)
        made = _calls(cluster) - calls
    ended = {
        pool[: len(names[0])]: at for pool, at in ec2.ended(platform.namespace).items()
    }
    late = _late("instances ended", planned, ended)
    told = _late("claims told", planned, stopped)
    print(f"{made / WORKSPACES:.1f} calls of the function for each")
    assert ec2.live(platform.namespace) == [], "nothing is billed"
    assert len(late) == len(told) == WORKSPACES
    assert late[0] >= 0 and told[0] >= 0, "nobody is stopped before their time"
    assert late[-1] <= LATE
    assert made / WORKSPACES <= 20, "no storm of calls"
    # The deletion of so many claims takes longer than the fixture would wait.
    cluster.delete_claims(platform.namespace, seconds=180 + WORKSPACES)


def _late(
    what: str, planned: dict[str, datetime], met: dict[str, datetime]
) -> list[float]:
    """By how many seconds each deadline was missed, in increasing order."""
    assert met.keys() <= planned.keys()
    late = sorted((at - planned[name]).total_seconds() for name, at in met.items())
    count = len(late)
    print(
        f"{count} of {len(planned)} {what}: half within {late[count // 2]:.0f} s, nine of ten within "
        f"{late[count * 9 // 10]:.0f} s, all within {late[-1]:.0f} s"
    )
    return late


def _commit(
    cluster: Cluster, platform: Platform, composition: str, lifetimes: dict[str, str]
) -> None:
    items = []
    for name, lifetime in lifetimes.items():
        parameters = {**PARAMETERS, "lifecycle": {"maxLifetime": lifetime}}
        document = claim(platform.namespace, name, parameters)
        document["spec"]["compositionRef"] = {"name": composition}
        items.append(document)
    listed: Object = {"apiVersion": "v1", "kind": "List", "items": items}
    cluster.kubectl(
        *("apply", "--server-side", "--force-conflicts", "-f", "-"),
        stdin=json.dumps(listed),
    )


def _all(lives: Following, field: str, seconds: float) -> dict[str, datetime]:
    """The times in a field, by claim, once all claims have it."""

    def look() -> int:
        return WORKSPACES - len(lives.times(field))

    _await_none(f"claims without {field}", look, seconds)
    return lives.times(field)


def _await_ends(
    lives: Following, ends: dict[str, datetime], seconds: float
) -> dict[str, datetime]:
    """The deadlines in the statuses, once all are close to the committed ones."""
    # Crossplane may read objects that are some seconds old. The function may then
    # compute a deadline from a start that differs by seconds.
    near = timedelta(seconds=30)

    def look() -> int:
        planned = lives.times("stopsAt")
        return sum(
            name not in planned or abs(planned[name] - end) > near
            for name, end in ends.items()
        )

    _await_none("workspaces that do not know their end", look, seconds)
    return lives.times("stopsAt")


def _await_none(what: str, count: Callable[[], int], seconds: float) -> None:
    """Waits until the count is 0. A failure shows the remaining count."""
    try:
        until(f"no {what}", lambda: count() == 0, seconds, period=1)
    except AssertionError as error:
        raise AssertionError(f"{error}: {count()} are left") from error


def _calls(cluster: Cluster) -> int:
    """How often Crossplane has called the function."""
    total = 0
    for pod in cluster.pods(FUNCTION):
        for line in operations(cluster, "/metrics", pod).splitlines():
            name, _, value = line.rpartition(" ")
            if name.startswith("grpc_server_handled_total") and "RunFunction" in name:
                total += int(float(value))
    return total
