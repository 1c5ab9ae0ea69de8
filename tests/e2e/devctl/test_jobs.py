"""Jobs outlive the connection, and their exit codes arrive."""

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path

from cluster.workspaces import Workspaces
from devctl.program import Devctl
from environment.waiting import until


def state(devctl: Devctl, job: str) -> str:
    jobs = devctl.object("jobs", "work")["jobs"]
    return str(next(one["state"] for one in jobs if one["id"] == job))


def begun(devctl: Devctl) -> subprocess.Popen[str]:
    """A `run` whose job goes on until the file `go` is there, and exits with 7."""
    devctl.says("create", "work", "cpu-small")
    script = "echo begun; while ! [ -e go ]; do sleep 0.1; done; echo done; exit 7"
    running = devctl.start("run", "work", "--job", "long", "sh", "-c", script)
    assert running.stdout is not None
    assert running.stdout.readline() == "begun\n"
    return running


def test_a_job_outlives_the_connection_and_its_code_arrives(devctl: Devctl) -> None:
    running = begun(devctl)
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


def children(process: int, *matching: str) -> list[int]:
    found = subprocess.run(
        ["pgrep", "-P", str(process), *matching],
        capture_output=True,
        text=True,
        check=False,
    )
    return [int(child) for child in found.stdout.split()]


def follows(devctl: int) -> list[int]:
    """The processes of ssh that follow a job for devctl."""
    return children(devctl, "-f", "logs --follow")


def test_a_run_goes_on_over_a_new_connection(devctl: Devctl) -> None:
    running = begun(devctl)
    # ssh's way to the workspace breaks.
    (first,) = follows(running.pid)
    (proxy,) = children(first)
    os.kill(proxy, signal.SIGKILL)
    until(
        "devctl to follow the job again",
        lambda: any(ssh != first for ssh in follows(running.pid)),
        30,
    )
    devctl.says("ssh", "work", "--", "touch go")
    output, said = running.communicate(timeout=60)
    assert (running.returncode, output) == (7, "done\n"), said
    assert "the connection is lost; the job goes on; connecting again" in said


def test_jupyter_is_found_again_and_counts_as_use_only_while_a_kernel_is_busy(
    devctl: Devctl, tmp_path: Path
) -> None:
    devctl.says("create", "work", "cpu-small")
    devctl.says("ssh", "work", "--", "mkdir -p .local/bin && echo idle > kernel")
    fake = Path(__file__).with_name("jupyter_server.py")
    devctl.says("cp", str(fake), "work:.local/bin/jupyter")
    devctl.says("ssh", "work", "--", "chmod +x .local/bin/jupyter")

    def opened() -> str:
        jupyter = devctl.start("jupyter", "work", "--no-open")
        assert jupyter.stdout is not None
        address = jupyter.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), jupyter.communicate()
        try:
            until("JupyterLab", lambda: page(address) == "JupyterLab\n", 30)
        finally:
            jupyter.send_signal(signal.SIGINT)
            jupyter.communicate(timeout=30)
        return address.split("token=")[1]

    def verdict() -> str:
        status = devctl.object("show", "work")["status"]
        return str(status.get("activity", {}).get("verdict"))

    token = opened()
    assert opened() == token, "a second server was started"
    jobs = devctl.object("jobs", "work")["jobs"]
    assert [(job["id"], job["state"]) for job in jobs] == [("jupyter-lab-1", "Running")]
    assert token not in json.dumps(jobs)
    until("the workspace to be idle", lambda: verdict() == "Idle", 120)
    devctl.says("ssh", "work", "--", "echo busy > kernel")
    until("the kernel to count", lambda: verdict() == "Active", 60)


def page(address: str) -> str:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


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
