"""Runs on all nodes of a workspace."""

import json
import re
import subprocess

import pytest

from on_cluster.ssh import Login
from on_cluster.work import SCRIPT
from on_cluster.workspaces import Workspace, kubectl, until

# Lists the processes that a run could leave behind. With the brackets, the patterns do
# not match the shell that runs pgrep.
LEFT = "pgrep -fa '[t]orchrun|[t]rain.py|[f]ail.py|[n]ode_agent' || true"


@pytest.fixture(autouse=True)
def steady(gang: Workspace) -> None:
    gang.wait()


def test_a_node_is_reached_by_its_pods_name_without_a_question(
    gang: Workspace, login: Login
) -> None:
    names = ["gang-1", "gang-1.gang", "gang-1.gang.workspaces.svc.cluster.local"]
    for name in names:
        said = login.run(gang.address(0), f"ssh {name} hostname").stdout
        assert said.strip() == "gang-1"


def test_an_allreduce_over_two_nodes_gives_the_right_sum(
    gang: Workspace, login: Login
) -> None:
    command = "ssh gang-0 workspace-allreduce --size 4"
    shown = login.run(gang.address(1), command).stdout
    assert shown.count("right") == 2 and "WRONG" not in shown
    said = login.run(gang.address(0), "workspace-allreduce --size 4 -o json").stdout
    ranks = json.loads(said)
    assert [rank["node"] for rank in ranks] == [0, 1]
    assert all(rank["correct"] and rank["busGBps"] > 0 for rank in ranks)


def test_a_rendezvous_of_all_nodes_is_confirmed(gang: Workspace, login: Login) -> None:
    shown = login.run(gang.address(1), "workspace-rendezvous").stdout
    assert "all nodes met" in shown


def test_a_node_that_does_not_arrive_is_named(gang: Workspace, login: Login) -> None:
    # A stopped sshd accepts no new connections, as on a node that does not answer.
    hold = "pkill -STOP -o -x sshd"
    kubectl("-n", "workspaces", "exec", "gang-1", "--", "sh", "-c", hold)
    try:
        command = "workspace-rendezvous --wait 5 -o json"
        done = login.run(gang.address(0), command, check=False)
        rows = json.loads(done.stdout)
        assert done.returncode == 1
        assert [row["arrived"] for row in rows] == [False, False] or (
            [row["arrived"] for row in rows] == [True, False]
        )
        assert "port 22 does not answer" in rows[1]["why"]
    finally:
        go = "pkill -CONT -x sshd"
        kubectl("-n", "workspaces", "exec", "gang-1", "--", "sh", "-c", go)


def test_what_nccl_finds_is_shown(gang: Workspace, login: Login) -> None:
    report = json.loads(login.run(gang.address(0), "workspace-nccl -o json").stdout)
    assert "eth0" in report["interfaces"]
    assert report["sharedMemory"]["totalMiB"] == 256
    assert report["environment"]["NCCL_DEBUG"] == "WARN"
    assert "NCCL_DEBUG" in login.run(gang.address(0), "workspace-nccl").stdout


def test_a_run_on_two_nodes_shows_whose_lines_are_whose(
    gang: Workspace, login: Login
) -> None:
    said = login.run(gang.address(0), f"workspace-torchrun {SCRIPT} 3").stdout
    lines = said.splitlines()
    assert "gang-0: rank 0 done" in lines and "gang-1: rank 1 done" in lines
    assert "gang-0: step 2 of 2" in lines


def test_a_setting_of_the_session_reaches_every_node(
    gang: Workspace, login: Login
) -> None:
    for index in range(gang.nodes):
        program = "import os; print('it is', os.environ['NCCL_DEBUG'])"
        login.run(gang.address(index), "cat > show.py", given=program)
    command = "NCCL_DEBUG='a \"b\" c' workspace-torchrun show.py"
    lines = login.run(gang.address(0), command).stdout.splitlines()
    assert sorted(lines) == [f'gang-{i}: it is a "b" c' for i in range(2)]


def test_a_failing_script_ends_the_run_with_its_status(
    gang: Workspace, login: Login
) -> None:
    fail = "import os, sys, time\nif os.environ['RANK'] == '1': sys.exit(3)\ntime.sleep(600)"
    for index in range(gang.nodes):
        login.run(gang.address(index), "cat > fail.py", given=fail)
    done = login.run(gang.address(0), "workspace-torchrun fail.py", check=False)
    assert done.returncode == 1
    assert "gang-1 ended with 1; the others were ended" in done.stderr
    _nothing_is_left(gang, login)


def test_a_folder_that_a_node_lacks_is_named(gang: Workspace, login: Login) -> None:
    command = "mkdir -p here && cd here && workspace-torchrun train.py"
    done = login.run(gang.address(0), command, check=False)
    assert done.returncode == 72
    assert "/home/developer/here cannot be entered on gang-1" in done.stderr


def test_a_session_that_ends_takes_its_run_with_it(
    gang: Workspace, login: Login
) -> None:
    running = login.start(gang.address(0), f"workspace-torchrun {SCRIPT} 1000")
    _begins(running)
    running.kill()
    running.wait()
    _nothing_is_left(gang, login)


def test_a_run_that_is_interrupted_ends_everywhere(
    gang: Workspace, login: Login
) -> None:
    running = login.start(gang.address(0), f"workspace-torchrun {SCRIPT} 1000")
    _begins(running)
    login.run(gang.address(0), "pkill -INT -f bin/workspace-torchrun")
    running.communicate()
    assert running.returncode == 130
    _nothing_is_left(gang, login)


@pytest.mark.parametrize("how", [[], ["--force", "--grace-period=0"]])
def test_a_run_goes_on_after_a_node_was_lost(
    gang: Workspace, login: Login, how: list[str]
) -> None:
    command = f"workspace-torchrun --restarts 3 {SCRIPT} 15"
    running = login.start(gang.address(0), command)
    _begins(running)
    uid = gang.pod("gang-1")["metadata"]["uid"]
    gang.delete_pod(1, "--wait=false", *how)

    def back() -> bool:
        found = gang.pod("gang-1").get("metadata", {})
        return bool(found.get("uid", uid) != uid)

    until("another gang-1", back)
    gang.wait()
    said, _ = running.communicate()
    assert running.returncode == 0, said
    assert re.search(r"restart 1 of 3", said)
    assert "gang-1: rank 1 done" in said
    _nothing_is_left(gang, login)


def _begins(running: subprocess.Popen[str]) -> None:
    """Reads the output up to the first step in which all nodes took part."""
    assert running.stdout is not None
    said = ""
    for line in running.stdout:
        if "step 1 " in line:
            return
        said += line
    raise AssertionError(f"the run ended with {running.wait()}:\n{said}")


def _nothing_is_left(gang: Workspace, login: Login) -> None:
    for index in range(gang.nodes):
        until(
            f"node {index} to be free of the run",
            lambda: not login.run(gang.address(index), LEFT).stdout,
            40,
        )
