"""A machine downloads the agent that the policy names, and runs no other program."""

import hashlib
from collections.abc import Callable

import pytest

from machines import agent, workspaces
from machines.machine import Machine, status
from machines.waiting import until

RIGHT = b"#!/bin/sh\necho the agent\n"
WRONG = b"#!/bin/sh\necho something else\n"
CURL = """#!/bin/sh
echo "$@" >>/run/curl
while [ "$1" != -o ]; do shift; done
exec python3 -c 'import sys, urllib.request as r
open(sys.argv[1], "wb").write(r.urlopen(sys.argv[2]).read())' "$2" "$3"
"""


@pytest.fixture
def machine(fresh: Callable[[], Machine]) -> Machine:
    return fresh()


def _downloads(machine: Machine) -> None:
    output, _ = agent.start(machine, "ExecStartPre").communicate(timeout=60)
    assert output == ""


@pytest.mark.parametrize("with_curl", [False, True])
def test_the_program_of_the_policy_is_installed(
    machine: Machine, with_curl: bool
) -> None:
    agent.install(machine, served=RIGHT, wanted=RIGHT)
    if with_curl:
        machine.write("/usr/local/bin/curl", CURL, "0755")
    _downloads(machine)
    assert machine.says(agent.PROGRAM) == "the agent"
    assert machine.says("stat", "-c", "%a %U", agent.PROGRAM) == "755 root"
    assert machine.has("/run/curl") == with_curl


def test_a_boot_after_the_first_needs_no_download(machine: Machine) -> None:
    agent.install(machine, served=RIGHT, wanted=RIGHT)
    _downloads(machine)
    machine.run("rm", "/srv/served/gpu-workspace-agent")
    _downloads(machine)
    assert agent.setup_log(machine) == ""


def test_another_program_is_not_run_and_the_setup_log_says_so(machine: Machine) -> None:
    agent.install(machine, served=WRONG, wanted=RIGHT)
    running = agent.start(machine, "ExecStartPre")
    digest = hashlib.sha256(WRONG).hexdigest()
    until("the refusal", lambda: "it is not run" in agent.setup_log(machine))
    (line,) = agent.setup_log(machine).splitlines()
    assert f"{agent.URL} has the SHA-256 {digest} instead of" in line
    assert not machine.has(agent.PROGRAM)
    assert running.poll() is None
    agent.serve(machine, RIGHT)
    assert running.wait(timeout=60) == 0
    assert machine.says(agent.PROGRAM) == "the agent"


def test_a_server_that_is_late_is_waited_for(machine: Machine) -> None:
    agent.install(machine, served=None, wanted=RIGHT)
    running = agent.start(machine, "ExecStartPre")
    until("a complaint", lambda: "cannot download" in agent.setup_log(machine))
    agent.serve(machine, RIGHT)
    assert running.wait(timeout=60) == 0
    assert machine.says(agent.PROGRAM) == "the agent"


def test_a_program_that_was_changed_is_replaced_at_the_next_boot(
    machine: Machine,
) -> None:
    agent.install(machine, served=RIGHT, wanted=RIGHT)
    machine.write(agent.PROGRAM, WRONG, "0755")
    _downloads(machine)
    assert machine.says(agent.PROGRAM) == "the agent"


def test_a_workspace_is_set_up_whatever_becomes_of_its_agent(machine: Machine) -> None:
    workspaces.with_agent(machine).boot.finish()
    assert status(machine)["status"] == "done", status(machine)
    wants = "/etc/systemd/system/multi-user.target.wants"
    assert machine.has(f"{wants}/{agent.UNIT}")


def test_systemd_takes_the_unit(machine: Machine) -> None:
    agent.install(machine, served=RIGHT, wanted=RIGHT)
    _downloads(machine)
    assert machine.says("systemd-analyze", "verify", agent.UNIT) == ""


def test_an_instance_tells_who_uses_it_and_its_host_key(machine: Machine) -> None:
    agent.install(machine, served=agent.program(), wanted=agent.program())
    agent.cloud(machine)
    machine.run("useradd", "--create-home", "developer")
    machine.run("ssh-keygen", "-A")
    _downloads(machine)
    endpoint = "http://169.254.169.254"
    running = agent.start(machine, "ExecStart", AWS_ENDPOINT_URL_EC2=endpoint)
    tags = agent.tags(machine)
    report, key = "gpu.platform.acme.io:activity", "gpu.platform.acme.io:host-key"
    assert tags.keys() == {report, key}
    assert tags[report].startswith("v1 at=")
    assert " job=none gpu=absent kernel=absent" in tags[report]
    public = machine.says("cat", "/etc/ssh/ssh_host_ed25519_key.pub")
    assert tags[key].split() == public.split()[:2]
    shown = machine.says(agent.PROGRAM, "status")
    assert shown.startswith("SOURCE"), shown
    running.kill()


def test_the_owner_saves_work_before_a_stop(machine: Machine) -> None:
    agent.install(machine, served=agent.program(), wanted=agent.program())
    machine.run("useradd", "--create-home", "developer")
    _downloads(machine)
    hook = "/home/developer/.config/gpu-workspace/pre-stop"
    script = '#!/bin/sh\nid -un >>"$HOME/saved"; echo "$WORKSPACE_STOP_REASON"\n'
    machine.write(hook, script, "0755")
    agent.stop(machine)
    agent.stop(machine)
    assert machine.says("cat", "/home/developer/saved") == "developer"
    log = machine.says("cat", agent.HOOK_LOG).splitlines()
    assert log[1] == "stop" and log[2].endswith("exit status: 0"), log
