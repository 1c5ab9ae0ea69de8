"""The broker is killed while people work."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable

import pytest

from bastion.door import NAMESPACE, Door, Visitor, requests
from cluster.workspaces import Workspaces
from environment.cluster import Cluster
from environment.waiting import until

KILLS = int(os.environ.get("BASTION_KILLS", "12"))
SEED = int(os.environ.get("BASTION_SEED", str(random.randrange(1 << 32))))


def replace(door: Door, cluster: Cluster) -> None:
    """Replaces the pod of the first replica. In the same pod, the kubelet would start a
    container again after longer and longer pauses."""
    old = door.pod()["metadata"]["uid"]
    cluster.kubectl("delete", "pod", "gpu-bastion-0", "-n", NAMESPACE, "--now")
    until("another pod", lambda: door.ready() not in (None, old), 90)


@pytest.mark.alone
def test_whatever_happened_is_written_down_before_however_the_broker_ends(
    alice: Workspaces, enter: Callable[..., Visitor], door: Door, cluster: Cluster
) -> None:
    dice = random.Random(SEED)
    print(f"BASTION_SEED={SEED} BASTION_KILLS={KILLS}")
    enter(alice)
    before = len(requests())
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
        os.kill(door.broker(), signal.SIGKILL)
        worker.join(120)
        replace(door, cluster)

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
        assert record["time"][:26] <= request["requestReceivedTimestamp"][:26]
    assert [one["seq"] for one in records] == list(range(1, len(records) + 1))
    # Each session that a kill cut off is closed in the books of the next broker.
    started = [one for one in records if one["event"] == "bastion.started"]
    assert len(started) >= KILLS
    opened = {one["session"] for one in records if one["event"] == "session.opened"}
    ends = ("session.closed", "session.lost")
    ended = {one["session"] for one in records if one["event"] in ends}
    assert opened == ended
    assert "the chain is whole" in door.verify()


@pytest.mark.alone
def test_people_log_in_again_when_only_the_broker_was_killed(
    alice: Workspaces, enter: Callable[..., Visitor], door: Door
) -> None:
    visitor = enter(alice)
    os.kill(door.broker(), signal.SIGKILL)
    until("the bastion", lambda: visitor("whoami").returncode == 0, 60)
