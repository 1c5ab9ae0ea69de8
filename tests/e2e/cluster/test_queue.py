"""Kueue: workspaces wait for quota, get it, lose it, and get it again."""

import pytest

from cluster.workspaces import HOME, Workspaces
from environment.waiting import until

# The tests share the quota of one GPU.
pytestmark = pytest.mark.xdist_group("queue")


def gpu(user: Workspaces, name: str, **parameters: object) -> None:
    user.claim(name, composition="queued", flavor="gpu", **parameters)


def test_the_second_waits_with_its_reason_until_the_first_stops(
    team: Workspaces,
) -> None:
    gpu(team, "first", home=HOME)
    team.ready("first", seconds=120)
    team.condition("first", "Admitted", "True")

    gpu(team, "second", home=HOME)
    waiting = team.phase("second", "Queued", "insufficient unused quota", seconds=60)
    assert waiting["queue"]["name"] == "gpus"
    gpu(team, "third")
    # Kueue writes no reason for a workload that is not the next one.
    team.phase("third", "Queued", "waiting", seconds=60)
    team.condition("second", "Admitted", "False", "insufficient unused quota")
    # Kueue computes the positions separately, after it has written the reason.
    for name, place in {"second": 1, "third": 2}.items():
        until(
            f"{name} to be number {place} in the queue",
            lambda: team.status(name).get("queue", {}).get("position") == place,
        )

    team.change("first", lifecycle={"state": "Stopped"})
    team.phase("first", "Stopped", seconds=90)
    second = team.ready("second", seconds=120)
    assert "queue" not in second
    assert team.condition("second", "Admitted", "True")


def test_a_preempted_workspace_says_so_and_comes_back(team: Workspaces) -> None:
    gpu(team, "background", home=HOME)
    before = team.ready("background", seconds=120)
    team.run("background", "echo", "kept", ">", "result.txt")

    gpu(team, "urgent", queue={"priorityClass": "interactive"})
    lost = team.phase("background", "Queued", "Preempted to accommodate", seconds=60)
    assert "ssh" not in lost
    team.condition("background", "Admitted", "False", "Preempted")
    team.ready("urgent", seconds=120)

    team.delete("urgent")
    after = team.ready("background", seconds=120)
    assert after["hostKeys"] == before["hostKeys"]
    assert team.run("background", "cat", "result.txt") == "kept"


def test_a_resize_is_a_stop_and_a_start(team: Workspaces) -> None:
    gpu(team, "resized", home=HOME)
    team.ready("resized", seconds=120)
    team.run("resized", "echo", "kept", ">", "result.txt")
    team.change("resized", overrides={"cpu": "200m"})
    team.condition("resized", "ConfigResolved", "True", "take effect at the next start")
    team.change("resized", lifecycle={"state": "Stopped"})
    team.phase("resized", "Stopped", seconds=90)
    team.change("resized", lifecycle={"state": "Running"})
    status = team.ready("resized", seconds=120)
    assert status["pods"]["cpu"] == "200m"
    assert team.run("resized", "cat", "result.txt") == "kept"


def test_leaving_the_queue_out_does_not_pass_it_by(team: Workspaces) -> None:
    """The Composition has no queues, but the namespace opted in to Kueue."""
    team.claim("bypass", flavor="gpu")
    team.condition("bypass", "ComputeReady", "False", "scheduling gate", seconds=60)
    assert team.pods("bypass")[0]["status"]["phase"] == "Pending"
