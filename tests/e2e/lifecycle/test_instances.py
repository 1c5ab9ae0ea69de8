"""Instances that boot: logging in, and who keeps them running."""

import subprocess

from environment.waiting import until
from lifecycle.life import now
from lifecycle.machine import Machine

LIMIT = 45
SHOW_CV2 = "bash -lc 'python -c \"import cv2; print(cv2.__version__)\"'"


def test_the_owner_logs_in_to_a_verified_host_with_the_opencv_of_the_claim(
    machine: Machine,
) -> None:
    begun = now()
    machine.commit({})
    status = machine.logged_in()
    print(f"logged in {(now() - begun).total_seconds():.1f} s after the commit")
    (key,) = status["hostKeys"]
    assert key.startswith("ssh-ed25519 ")
    machine.set_up()
    assert machine.run(SHOW_CV2) == "4.8.0"


def test_a_session_keeps_an_instance_and_a_broken_agent_does_too(
    machine: Machine,
) -> None:
    machine.commit({"stopAfterIdle": f"{LIMIT}s"})
    instance = machine.logged_in()["instanceId"]
    with subprocess.Popen(["ssh", *machine.options(), "-N"]) as session:
        _stays(machine, "Active", "in use: ssh")
        session.terminate()

    machine.run("sudo pkill -STOP -x gpu-workspace-a")
    _stays(machine, "Unknown", "its agent last reported at")
    garbage = {"Key": "gpu.platform.acme.io:activity", "Value": "idle, honestly"}
    machine.ec2.client.create_tags(Resources=[instance], Tags=[garbage])
    until("garbage", lambda: _says(machine, "Unknown", "cannot be read"))
    assert machine.machines() == [instance]

    machine.run("sudo pkill -CONT -x gpu-workspace-a")
    machine.ended(instance, seconds=120)
    machine.phase("Stopped")
    assert machine.lifecycle()["stoppedBecause"] == "Idle"


def test_a_registered_job_keeps_an_instance_without_a_session(machine: Machine) -> None:
    machine.commit({"stopAfterIdle": f"{LIMIT}s"})
    instance = machine.logged_in()["instanceId"]
    machine.run(
        "setsid gpu-workspace-agent run --name train -- sleep 300 >/dev/null 2>&1 </dev/null &"
    )
    _stays(machine, "Active", "in use: job")
    machine.run("pkill -9 -f 'run --name train'")
    machine.ended(instance, seconds=120)
    machine.phase("Stopped")


def _says(machine: Machine, verdict: str, word: str) -> bool:
    activity = machine.status().get("activity", {})
    return activity.get("verdict") == verdict and word in activity.get("message", "")


def _stays(machine: Machine, verdict: str, word: str) -> None:
    """It is told so, and it runs for longer than it may be idle."""
    until(f"{verdict}: {word}", lambda: _says(machine, verdict, word), 90)
    begun = now()
    until(
        "more than the limit to pass",
        lambda: (now() - begun).total_seconds() > LIMIT + 15
        or machine.status()["phase"] != "Ready",
        seconds=2 * LIMIT,
    )
    assert machine.status()["phase"] == "Ready"
    assert _says(machine, verdict, word), machine.status().get("activity")
