"""The use of a workspace in the cluster, as the agent in its pod reports it."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cluster.workspaces import HOME, Workspaces
from environment.objects import Object
from environment.waiting import until
from lifecycle.life import moment, runs, says, stays

# Seconds until an idle stop. On a busy machine ssh must open a session before that.
LIMIT = 30
KEPT = 2 * LIMIT
LIFECYCLE = {"stopAfterIdle": f"{LIMIT}s"}
ANNOTATION = "gpu.platform.acme.io/activity"
# The only pod of the workspace has the only Lease.
LEASE = "platform.acme.io/cluster-workspace=gpuws-idle"


@pytest.fixture
def idle(alice: Workspaces, watched: str) -> Workspaces:
    """Alice's workspaces, with a workspace `idle` that nobody uses."""
    alice.claim("idle", composition=watched, home=HOME, lifecycle=LIFECYCLE)
    alice.ready("idle", seconds=120)
    return alice


def test_a_pod_that_nobody_uses_stops_at_its_time_and_says_why(
    idle: Workspaces,
) -> None:
    eligible = until("a report", lambda: _activity(idle).get("eligibleAt"), seconds=60)
    idle.phase("idle", "Stopped", seconds=90)
    stopped = idle.status("idle")["lifecycle"]
    assert stopped["stoppedBecause"] == "Idle"
    late = (moment(stopped["stoppedAt"]) - moment(eligible)).total_seconds()
    print(f"stopped {late:.0f} s after it became eligible, by the report after that")
    assert 0 <= late <= 10
    assert idle.pods("idle") == []


def test_a_session_keeps_a_pod_and_its_end_does_not(idle: Workspaces) -> None:
    with _session(idle):
        stays(lambda: idle.status("idle"), "Active", "ssh", KEPT)
    idle.phase("idle", "Stopped", seconds=90)


def test_a_registered_job_keeps_a_pod_without_a_session(idle: Workspaces) -> None:
    agent = "/opt/gpu-workspace/agent/gpu-workspace-agent"
    idle.run(
        "idle",
        f"setsid {agent} run --name train -- sleep 300 >/dev/null 2>&1 </dev/null &",
    )
    stays(lambda: idle.status("idle"), "Active", "job", KEPT)
    idle.run("idle", "pkill", "-9", "-f", "'run --name train'")
    idle.phase("idle", "Stopped", seconds=90)


def test_an_agent_that_hangs_or_lies_stops_nobody(idle: Workspaces) -> None:
    until("a report", lambda: _activity(idle).get("eligibleAt"), seconds=60)
    (pod,) = idle.pods("idle")
    agent = _process(idle, pod, "agent")
    os.kill(agent, signal.SIGSTOP)
    unknown = until(
        "its report to be too old",
        lambda: says(idle.status("idle"), "Unknown", "its agent last reported at"),
        seconds=60,
    )
    assert "it counts as used" in unknown["message"]

    for lie, word in [
        ("idle, honestly", "cannot be read"),
        (
            "v1 at=2099-01-01T00:00:00Z ssh=none job=none gpu=absent kernel=absent",
            "of the future",
        ),
    ]:
        idle.cluster.kubectl(
            *("annotate", "lease", "-l", LEASE, "-n", idle.namespace),
            *("--overwrite", f"{ANNOTATION}={lie}"),
        )
        until(word, lambda word=word: says(idle.status("idle"), "Unknown", word))
    runs(lambda: idle.status("idle"), KEPT)
    os.kill(agent, signal.SIGCONT)
    idle.phase("idle", "Stopped", seconds=90)


def _activity(workspaces: Workspaces) -> Object:
    found: Object = workspaces.status("idle").get("activity", {})
    return found


@contextmanager
def _session(workspaces: Workspaces) -> Iterator[None]:
    status = workspaces.status("idle")
    session = subprocess.Popen(
        [
            *("ssh", "-F", "none", "-i", str(workspaces.key.private), "-N"),
            *("-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes"),
            *("-o", f"UserKnownHostsFile={_known_hosts(workspaces, status)}"),
            *("-o", f"HostKeyAlias={status['nodes'][0]['host']}"),
            f"developer@{status['nodes'][0]['ip']}",
        ]
    )
    try:
        yield
    finally:
        session.terminate()
        session.wait()


def _known_hosts(workspaces: Workspaces, status: Object) -> str:
    path = workspaces.key.private.parent / "known-hosts-session"
    (key,) = status["hostKeys"]
    path.write_text(f"{status['nodes'][0]['host']} {key}\n")
    return str(path)


def _process(workspaces: Workspaces, pod: Object, container: str) -> int:
    """The first process of a sidecar, which is among the pod's init containers."""
    statuses = pod["status"]["initContainerStatuses"]
    (status,) = [one for one in statuses if one["name"] == container]
    return workspaces.cluster.process_of(status)
