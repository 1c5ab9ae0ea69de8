"""Instances that boot: logins, and the sessions and jobs that keep them running."""

import subprocess

from environment.waiting import until
from lifecycle.life import now, says, stays
from lifecycle.machine import Machine

LIMIT = 45
KEPT = LIMIT + 15
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
    assert machine.run(SHOW_CV2) == "4.8.0"


def test_a_session_keeps_an_instance_and_a_broken_agent_does_too(
    machine: Machine,
) -> None:
    machine.commit({"stopAfterIdle": f"{LIMIT}s"})
    instance = machine.logged_in()["instanceId"]
    with subprocess.Popen(["ssh", *machine.options(), "-N"]) as session:
        stays(machine.status, "Active", "in use: ssh", KEPT)
        session.terminate()

    machine.run("sudo pkill -STOP -x gpu-workspace-a")
    stays(machine.status, "Unknown", "its agent last reported at", KEPT)
    garbage = {"Key": "gpu.platform.acme.io:activity", "Value": "idle, honestly"}
    machine.ec2.client.create_tags(Resources=[instance], Tags=[garbage])
    until("garbage", lambda: says(machine.status(), "Unknown", "cannot be read"))
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
    stays(machine.status, "Active", "in use: job", KEPT)
    machine.run("pkill -9 -f 'run --name train'")
    machine.ended(instance, seconds=120)
    machine.phase("Stopped")
