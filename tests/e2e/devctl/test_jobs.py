"""Jobs outlive the connection, and their exit codes arrive."""

import os
import signal
from collections.abc import Callable

from cluster.workspaces import Workspaces
from devctl.program import Devctl
from environment.waiting import until


def state(devctl: Devctl, job: str) -> str:
    jobs = devctl.object("jobs", "work")["jobs"]
    return str(next(one["state"] for one in jobs if one["id"] == job))


def test_a_job_outlives_the_connection_and_its_code_arrives(devctl: Devctl) -> None:
    devctl.says("create", "work", "cpu-small")
    script = "echo begun; while ! [ -e go ]; do sleep 0.1; done; echo done; exit 7"
    running = devctl.start("run", "work", "--job", "long", "sh", "-c", script)
    assert running.stdout is not None
    assert running.stdout.readline() == "begun\n"
    # devctl and its ssh end; nothing tells the job.
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert state(devctl, "long-1") == "Running"
    devctl.says("ssh", "work", "--", "touch go")
    followed = devctl("logs", "work", "--job", "long-1", "--follow")
    assert followed.stdout == "begun\ndone\n"
    job = devctl.object("jobs", "work")["jobs"][0]
    assert (job["state"], job["code"]) == ("Finished", 7)
    code = devctl("run", "work", "sh", "-c", "exit 255")
    assert code.returncode == 255, code.stderr


def test_ctrl_c_leaves_the_job_and_says_so(devctl: Devctl) -> None:
    devctl.says("create", "work", "cpu-small")
    running = devctl.start(
        "run", "work", "--job", "long", "sh", "-c", "echo on; sleep 300"
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "on\n"
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=10)
    assert running.returncode == 130
    assert "job long-1 goes on: devctl logs work --job long-1 -f" in said
    assert state(devctl, "long-1") == "Running"
    assert "ended" in devctl.says("cancel", "work", "long-1")
    assert state(devctl, "long-1") == "Finished"


def test_a_replaced_machine_shows_its_jobs_as_lost(
    devctl: Devctl, alice: Workspaces
) -> None:
    devctl.says("create", "work", "cpu-small", "--home", "1Gi")
    devctl.says("run", "work", "--detach", "sleep", "300")
    assert state(devctl, "sleep-1") == "Running"
    before = alice.pods("work")[0]["metadata"]["uid"]
    devctl.says("stop", "work")
    devctl.says("start", "work")
    assert alice.pods("work")[0]["metadata"]["uid"] != before
    assert state(devctl, "sleep-1") == "Lost"


def test_a_job_on_an_instance_counts_as_use_and_watching_does_not(
    devctl: Devctl, instance: Callable[..., str]
) -> None:
    instance("work")

    def verdict() -> str:
        status = devctl.object("show", "work")["status"]
        return str(status.get("activity", {}).get("verdict"))

    watching = devctl.start("monitor", "work", "--interval", "1", "-o", "json")
    try:
        assert watching.stdout is not None
        assert '"cpuPercent"' in watching.stdout.readline()
        until("the workspace to be idle", lambda: verdict() == "Idle", 120)
        devctl.says("run", "work", "--detach", "sleep", "300")
        until("the job to count", lambda: verdict() == "Active", 60)
        assert watching.poll() is None
    finally:
        watching.kill()
