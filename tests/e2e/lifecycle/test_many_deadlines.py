"""A thousand workspaces whose time is over in the same minute."""

import json
import os
import urllib.request
from datetime import datetime, timedelta

from environment.cluster import CLAIMS, Cluster, Object
from environment.ec2 import Ec2
from environment.platform import PARAMETERS, Platform, claim
from environment.waiting import until
from lifecycle.life import moment, now

WORKSPACES = int(os.environ.get("DEADLINES", "1000"))
# Between the last commit and the first deadline, and between first and last one.
AHEAD = timedelta(seconds=90)
WITHIN = timedelta(minutes=1)
LATE = 10
# To list a thousand claims costs what stops a dozen: nobody does it all the time.
LIST_PERIOD = 5
FUNCTION = "function=acme-function-gpu-workspace"


def test_every_one_of_a_thousand_deadlines_in_a_minute_is_met(
    cluster: Cluster, platform: Platform, composition: str, ec2: Ec2
) -> None:
    names = [f"dev-{number:04}" for number in range(WORKSPACES)]
    _commit(cluster, platform, composition, {name: "12h" for name in names})
    _await(platform, "startedAt", seconds=3 * WORKSPACES + 120)
    started = _times(platform, "startedAt")
    first = now() + AHEAD + timedelta(seconds=WORKSPACES / 20)
    ends = {
        name: first + WITHIN * (number / WORKSPACES)
        for number, name in enumerate(names)
    }
    lifetimes = {
        name: f"{round((ends[name] - started[name]).total_seconds())}s"
        for name in names
    }
    _commit(cluster, platform, composition, lifetimes)
    assert now() < first, "the deadlines came before they were all committed"
    planned = until(
        "every workspace to know its end",
        lambda: _at_their_ends(_times(platform, "stopsAt"), ends),
        seconds=120,
        period=LIST_PERIOD,
    )
    calls = _calls(cluster)
    _await(
        platform,
        "stoppedAt",
        seconds=(first - now() + WITHIN).total_seconds() + 120,
    )
    stopped = _times(platform, "stoppedAt")
    made = _calls(cluster) - calls
    late = sorted((stopped[name] - planned[name]).total_seconds() for name in names)
    print(
        f"{WORKSPACES} deadlines: half met within {late[len(late) // 2]:.0f} s, all within "
        f"{late[-1]:.0f} s; {made / WORKSPACES:.1f} calls of the function for each"
    )
    assert late[0] >= 0, "nobody is stopped before their time"
    assert late[-1] <= LATE
    assert made / WORKSPACES <= 20, "no storm of calls"
    until(
        "EC2 to bill nothing",
        lambda: ec2.live(platform.namespace) == [],
        seconds=300,
        period=LIST_PERIOD,
    )
    print(
        f"nothing is billed {(now() - max(planned.values())).total_seconds():.0f} s later"
    )


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


def _times(platform: Platform, field: str) -> dict[str, datetime]:
    found = platform.cluster.all(CLAIMS, platform.namespace)
    times = {
        one["metadata"]["name"]: one.get("status", {}).get("lifecycle", {}).get(field)
        for one in found
    }
    return {name: moment(time) for name, time in times.items() if time}


def _await(platform: Platform, field: str, seconds: float) -> None:
    """Until every claim has a time in its status."""
    platform.cluster.kubectl(
        *("wait", CLAIMS, "--all", "-n", platform.namespace),
        f"--for=jsonpath={{.status.lifecycle.{field}}}",
        f"--timeout={seconds:.0f}s",
    )


def _at_their_ends(
    planned: dict[str, datetime], ends: dict[str, datetime]
) -> dict[str, datetime] | None:
    """The ends as they are planned, once those that were committed are."""
    second = timedelta(seconds=1)
    known = all(
        name in planned and abs(planned[name] - end) <= second
        for name, end in ends.items()
    )
    return planned if known else None


def _calls(cluster: Cluster) -> int:
    """How often Crossplane has called the function."""
    total = 0
    for pod in cluster.pods(FUNCTION):
        address = f"http://{pod['status']['podIP']}:8080/metrics"
        with urllib.request.urlopen(address, timeout=10) as answer:
            for line in answer.read().decode().splitlines():
                name, _, value = line.rpartition(" ")
                if (
                    name.startswith("grpc_server_handled_total")
                    and "RunFunction" in name
                ):
                    total += int(float(value))
    return total
