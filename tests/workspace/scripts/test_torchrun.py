"""Runs on all nodes, with the real launcher and agents, but a fake ssh and torchrun."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import distributed_run
from fakes import ssh
from fakes.ssh import Nodes

Start = Callable[[str], Nodes]
# Runs the real launcher. Nodes with a file `lost` do not answer its probe.
PROGRAM = """\
import os, sys
import answering, gang, distributed_run

def probe(host):
    lost = os.path.join(sys.argv[1], host.split(".")[0], "lost")
    return "port 22 does not answer" if os.path.exists(lost) else None

wait = gang.wait
gang.wait = lambda nodes, seconds, say: wait(nodes, seconds, say, probe)
gang.PERIOD = 0.05
sys.exit(distributed_run.main(sys.argv[2:]))
"""
# Writes its environment and its arguments to a file. The test's code follows.
TORCHRUN = """\
import os, pathlib, signal, subprocess, sys, time
node = pathlib.Path(os.environ["NODE"])
rank = int(os.environ["PET_NODE_RANK"])
attempt = len(list(node.glob("attempt-*")))
port, run = os.environ["PET_MASTER_PORT"], os.environ["PET_RDZV_ID"]
(node / f"attempt-{attempt}").write_text(f"{port} {run} {os.getcwd()} {sys.argv[1:]}")
"""
# Waits until both nodes have reached this line.
TOGETHER = """\
(node / f"here-{attempt}").touch()
while len(list(node.parent.glob(f"*/here-{attempt}"))) < 2: time.sleep(0.01)
"""
# Starts a worker in a session of its own, which ignores SIGTERM.
STUBBORN = """\
worker = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
started = subprocess.Popen([sys.executable, "-c", worker], start_new_session=True)
(node / "worker").write_text(str(started.pid))
"""


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Makes nodes, by default two, whose torchrun runs the test's code."""

    def started(torchrun: str, count: int = 2) -> Nodes:
        nodes, programs = ssh.nodes(tmp_path, count, TORCHRUN + torchrun)
        for name, value in ssh.environment(nodes, programs).items():
            monkeypatch.setenv(name, value)
        scripts = str(ssh.SCRIPTS)
        monkeypatch.setenv("PYTHONPATH", scripts)
        monkeypatch.chdir(tmp_path)
        return nodes

    yield started


def begin(nodes: Nodes, arguments: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(nodes.folder), *arguments],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Shells start background commands with SIGINT ignored, and child processes
        # inherit it. The tests may be such a background command.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def run(nodes: Nodes, *arguments: str) -> subprocess.CompletedProcess[str]:
    begun = begin(nodes, arguments)
    output, errors = begun.communicate(timeout=60)
    return subprocess.CompletedProcess(arguments, begun.returncode, output, errors)


def noted(nodes: Nodes, index: int, attempt: int = 0) -> str:
    return (nodes[index] / f"attempt-{attempt}").read_text()


def until(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.02)


def test_every_node_runs_with_its_own_rank_and_the_same_rendezvous(
    start: Start, tmp_path: Path
) -> None:
    nodes = start("print('rank', rank, flush=True)")
    done = run(nodes, "--nproc-per-node=2", "train.py", "--wait", "a b")
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    assert lines == ["vision-0: rank 0", "vision-1: rank 1"]
    arguments = ["--nproc-per-node=2", "train.py", "--wait", "a b"]
    assert noted(nodes, 0) == noted(nodes, 1)
    assert noted(nodes, 0).endswith(f"{tmp_path} {arguments}")


def test_output_without_a_lines_end_is_not_lost_or_mixed(start: Start) -> None:
    nodes = start(
        "for part in range(2000): sys.stdout.write(f'{rank}' * 40 + '\\n')\n"
        "sys.stdout.write('50%\\r100%'); sys.stdout.flush()"
    )
    done = run(nodes, "train.py")
    for index in range(2):
        assert done.stdout.count(f"vision-{index}: {str(index) * 40}\n") == 2000
        assert f"vision-{index}: 100%\n" in done.stdout


def test_a_nodes_failure_ends_the_others_and_is_the_runs(start: Start) -> None:
    nodes = start(STUBBORN + TOGETHER + "sys.exit(7) if rank == 1 else time.sleep(600)")
    done = run(nodes, "train.py")
    assert done.returncode == 7
    assert "vision-1 ended with 7; the others were ended" in done.stderr
    for index in range(2):
        assert not ssh.alive(int((nodes[index] / "worker").read_text()))


def test_a_restart_is_another_rendezvous_on_another_port(start: Start) -> None:
    nodes = start(TOGETHER + "sys.exit(0 if attempt == 2 else 3)")
    done = run(nodes, "--restarts", "3", "train.py")
    assert done.returncode == 0, done.stderr
    seen = [noted(nodes, 0, attempt).split()[:2] for attempt in range(3)]
    assert [port for port, _ in seen] == ["29500", "29501", "29502"]
    assert len({run for _, run in seen}) == 3
    assert "restart 2 of 3" in done.stderr
    assert seen[2] == noted(nodes, 1, 2).split()[:2]


def test_restarts_are_counted(start: Start) -> None:
    nodes = start(TOGETHER + "sys.exit(3)")
    done = run(nodes, "--restarts=1", "train.py")
    assert done.returncode == 3
    assert len(list(nodes[0].glob("attempt-*"))) == 2


def test_a_lost_connection_ends_the_run_and_is_waited_for(start: Start) -> None:
    nodes = start("time.sleep(600 if attempt == 0 else 0)")
    running = begin(nodes, ["--restarts", "1", "train.py"])
    connections = nodes[1] / "connections"
    until("both nodes", lambda: all((nodes[i] / "attempt-0").exists() for i in (0, 1)))
    (nodes[1] / "lost").touch()
    # A real ssh would end when it loses the connection.
    os.kill(int(connections.read_text()), signal.SIGKILL)
    back = threading.Timer(0.5, (nodes[1] / "lost").unlink)
    back.start()
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 0, errors
    assert "waiting for vision-1: port 22 does not answer" in errors
    assert "restart 1 of 1" in errors


def test_a_node_that_never_answers_is_named(start: Start) -> None:
    nodes = start("")
    (nodes[1] / "lost").touch()
    done = run(nodes, "--wait", "0.2", "train.py")
    assert done.returncode == 1
    assert "1 of 2 nodes did not answer" in done.stderr
    assert "vision-1: port 22 does not answer" in done.stderr
    assert not (nodes[0] / "attempt-0").exists()


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_a_signal_reaches_every_node_and_nothing_is_left(
    start: Start, number: int, status: int
) -> None:
    nodes = start(
        "def told(number, frame):\n"
        "    (node / 'told').write_text(str(number)); sys.exit(1)\n"
        "for number in (2, 15): signal.signal(number, told)\n"
        + STUBBORN
        + "print('ready', flush=True); time.sleep(600)"
    )
    running = begin(nodes, ["train.py"])
    assert running.stdout is not None
    for _ in range(2):
        running.stdout.readline()
    running.send_signal(number)
    running.communicate(timeout=60)
    assert running.returncode == status
    for index in range(2):
        assert (nodes[index] / "told").read_text() == str(int(number))
        assert not ssh.alive(int((nodes[index] / "worker").read_text()))


def test_a_launcher_that_is_killed_leaves_nothing_behind(start: Start) -> None:
    nodes = start(STUBBORN + "print('ready', flush=True); time.sleep(600)")
    running = begin(nodes, ["train.py"])
    assert running.stdout is not None
    for _ in range(2):
        running.stdout.readline()
    running.kill()
    running.communicate(timeout=60)
    workers = [int((nodes[index] / "worker").read_text()) for index in range(2)]
    until("the workers to end", lambda: not any(map(ssh.alive, workers)))


def test_a_run_whose_output_nobody_reads_ends(start: Start) -> None:
    nodes = start("while True: print('line' * 1000, flush=True)")
    running = begin(nodes, ["train.py"])
    assert running.stdout is not None
    running.stdout.readline()
    running.stdout.close()
    assert running.wait(timeout=60) == 128 + signal.SIGPIPE


def test_a_quiet_run_ends_with_the_session_that_started_it(start: Start) -> None:
    nodes = start(STUBBORN + "print('ready', flush=True); time.sleep(600)")
    running = begin(nodes, ["train.py"])
    assert running.stdout is not None
    for _ in range(2):
        running.stdout.readline()
    running.stdout.close()
    assert running.wait(timeout=60) == 128 + signal.SIGPIPE
    workers = [int((nodes[index] / "worker").read_text()) for index in range(2)]
    assert not any(map(ssh.alive, workers))


def test_a_folder_that_is_on_one_node_only_is_named(start: Start) -> None:
    nodes = start("")
    gone = nodes.folder / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("distributed_run.main", _IN_GONE)]
        + [str(nodes.folder), "train.py"],
        cwd=nodes.folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 72
    assert "/gone cannot be entered on vision-0" in done.stderr


_IN_GONE = (
    "(lambda a: (setattr(os, 'getcwd', lambda: sys.argv[1] + '/gone'),"
    " distributed_run.main(a))[1])"
)


def test_one_node_is_plain_torchrun(start: Start) -> None:
    nodes = start("")
    os.environ["WORKSPACE_HOSTS"] = nodes.hosts().split()[0]
    os.environ["NODE"] = str(nodes[0])
    os.environ |= {"PET_NODE_RANK": "0", "PET_RDZV_ID": "none"}
    done = run(nodes, "train.py")
    assert done.returncode == 0, done.stderr
    assert not (nodes[0] / "connections").exists()
    assert noted(nodes, 0).endswith("['train.py']")


def test_the_scripts_options_are_left_to_the_script() -> None:
    arguments = ["--wait=5", "--nproc-per-node", "2", "train.py", "--restarts", "9"]
    options = distributed_run.parsed(arguments)
    assert (options.wait, options.restarts) == (5, 0)
    assert options.arguments == arguments[1:]
