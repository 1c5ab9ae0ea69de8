"""The broker is killed while people work."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from bastion.door import Door, Visitor, moment, requests
from cluster.workspaces import Workspaces
from environment.waiting import until

KILLS = int(os.environ.get("BASTION_KILLS", "12"))
SEED = int(os.environ.get("BASTION_SEED", str(random.randrange(1 << 32))))


def kill_broker(door: Door) -> str:
    """Kills the broker, once one runs, and returns its container.

    The kubelet ends a container after three failed probes in a row. The failures may be
    those of killed brokers, so that the kubelet ends a broker that has just started.
    """

    def kill() -> str | None:
        container = str(door.container("broker")["containerID"])
        running = door.cluster.processes_in(container.removeprefix("containerd://"))
        for process in running:
            # The kubelet may end the process at the same time.
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
                return container
        return None

    return until("a broker that runs", kill, 90)


def is_back(door: Door, killed: str) -> bool:
    """Whether a broker takes logins in another container than the killed one."""
    status = door.container("broker")
    return bool(status["ready"]) and status["containerID"] != killed


def closed_late(records: list[dict[str, Any]], kills: list[float]) -> list[str]:
    """The sessions that a kill cut off, and that were closed in the books later than after
    a minute."""
    last, late = {}, []
    for record in records:
        session = record.get("session")
        if record["event"] == "session.lost":
            cut_off = min(kill for kill in kills if kill >= last[session])
            if moment(record["time"]) - cut_off > 60:
                late.append(session)
        elif session:
            last[session] = moment(record["time"])
    return late


@pytest.mark.alone
def test_whatever_happened_is_written_down_before_however_the_broker_ends(
    alice: Workspaces, enter: Callable[..., Visitor], door: Door
) -> None:
    dice = random.Random(SEED)
    print(f"BASTION_SEED={SEED} BASTION_KILLS={KILLS}")
    enter(alice)
    before = len(requests())
    kills = []
    for number in range(KILLS):
        visitor = door.visitor(alice.owner, alice.key)
        works = threading.Event()

        def work(visitor: Visitor = visitor, works: threading.Event = works) -> None:
            for _ in range(5):
                works.set()
                visitor("create", f"w{number}", "cpu-small", "--no-wait")
                visitor("delete", f"w{number}", "--yes", "--no-wait")

        worker = threading.Thread(target=work)
        worker.start()
        works.wait(30)
        time.sleep(dice.uniform(0, 1.5))
        killed = kill_broker(door)
        kills.append(time.time())
        worker.join(120)
        until("another broker", lambda killed=killed: is_back(door, killed), 90)

    records = door.records()
    asked = {one["auditId"]: one for one in records if one["event"] == "api.request"}
    mine = [
        one
        for one in requests()[before:]
        if alice.namespace in one.get("impersonatedUser", {}).get("username", "")
    ]
    assert len(mine) > KILLS
    for request in mine:
        record = asked[request["auditID"]]
        assert moment(record["time"]) <= moment(request["requestReceivedTimestamp"])
    assert [one["seq"] for one in records] == list(range(1, len(records) + 1))
    # Each session that a kill cut off is closed in the books of the next broker.
    started = [one for one in records if one["event"] == "bastion.started"]
    assert len(started) >= KILLS
    opened = {one["session"] for one in records if one["event"] == "session.opened"}
    ends = ("session.closed", "session.lost")
    ended = {one["session"] for one in records if one["event"] in ends}
    assert opened == ended
    assert closed_late(records, kills) == []
    assert "the chain is whole" in door.verify()


@pytest.mark.alone
def test_people_log_in_again_when_only_the_broker_was_killed(
    alice: Workspaces, enter: Callable[..., Visitor], door: Door
) -> None:
    visitor = enter(alice)
    kill_broker(door)
    until("the bastion", lambda: visitor("whoami").returncode == 0, 60)
