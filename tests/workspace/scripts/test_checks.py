"""The checks before a node is ready, and the files that an empty home gets."""

import os
import socket
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import answering
import gang
import home
import launch
import node_main
import readiness
import software
from failure import Failure
from gang import Node

SCRIPTS = Path(launch.__file__).parent


@pytest.mark.parametrize(
    ("version", "promised", "fits"),
    [
        ("4.8.0", "4.8.0", True),
        ("4.8.0.76", "4.8.0", True),
        ("1.13.1+cpu", "1.13.1", True),
        ("1.13.0a0", "1.13.1", False),
        ("4.8.01", "4.8.0", False),
        ("4.8", "4.8.0", False),
        ("2.7.1", "2.7", True),
        ("2.70.1", "2.7", False),
    ],
)
def test_another_version_than_promised_is_not_ready(
    version: str, promised: str, fits: bool
) -> None:
    assert software.fits(version, promised) is fits


def _python(folder: Path, body: str) -> dict[str, str]:
    """An environment whose python3 is a shell script with this body."""
    program = folder / "python3"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


GOOD = """\
echo '{"importing": "torch"}'; echo '{"module": "torch", "version": "2.7.1+cu126"}'
echo '{"importing": "cv2"}'; echo '{"module": "cv2", "version": "4.8.0"}'"""


def test_a_promise_that_is_kept_is_ready(tmp_path: Path) -> None:
    promises = {"WORKSPACE_PYTORCH_VERSION": "2.7.1", "WORKSPACE_OPENCV_VERSION": ""}
    found = software.check(_python(tmp_path, GOOD) | promises)
    assert found == {"torch": "2.7.1+cu126", "cv2": "4.8.0"}


def test_both_versions_stand_in_the_message(tmp_path: Path) -> None:
    promises = {"WORKSPACE_OPENCV_VERSION": "4.9.0"}
    with pytest.raises(Failure, match="has OpenCV 4.8.0 .* asks for 4.9.0"):
        software.check(_python(tmp_path, GOOD) | promises)


def test_a_module_that_does_not_import_is_named_with_the_reason(tmp_path: Path) -> None:
    # The Python of the tests has neither PyTorch nor OpenCV.
    environment = _python(tmp_path, f'exec {sys.executable} "$@"')
    with pytest.raises(Failure, match="PyTorch does not work.*No module named 'torch'"):
        software.check(environment)


def test_a_crash_while_importing_is_named(tmp_path: Path) -> None:
    body = 'echo \'{"importing": "torch"}\'; kill -ILL $$'
    with pytest.raises(Failure, match="cannot import torch: it was ended by SIGILL"):
        software.check(_python(tmp_path, body))


@contextmanager
def _listening(says: bytes | None) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                if says is not None:
                    connection.sendall(says)
                connection.recv(64)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def test_an_sshd_that_answers_is_ready() -> None:
    with _listening(b"SSH-2.0-OpenSSH_9.2\r\n") as port:
        assert answering.banner("127.0.0.1", port) is None


def test_something_else_on_the_port_is_not_ready() -> None:
    with _listening(b"HTTP/1.1 400 Bad Request\r\n") as port:
        assert "not as sshd does" in (answering.banner("127.0.0.1", port) or "")


def test_an_sshd_that_is_stuck_is_not_ready() -> None:
    with _listening(None) as port:
        why = answering.banner("127.0.0.1", port, seconds=0.1)
    assert why == f"port {port} does not answer"


def _probed(port: int) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


def test_the_kubelet_hears_why_nobody_can_log_in() -> None:
    answers = ["port 22: connection refused", None]
    asked = readiness.Readiness(lambda: answers.pop(0))
    server = readiness.serve(asked, port=0)
    port = server.server_address[1]
    assert _probed(port) == (503, "sshd on 127.0.0.1:22: port 22: connection refused\n")
    assert _probed(port) == (200, "sshd answers\n")
    server.shutdown()
    server.server_close()


def test_an_sshd_that_hangs_later_is_noticed_and_one_that_answers_left_in_peace() -> (
    None
):
    now, answers = [0.0], [None, "port 22 does not answer", None]
    asked = readiness.Readiness(lambda: answers.pop(0), clock=lambda: now[0])
    assert asked.why_not() is None
    now[0] = readiness.TRUSTED - 1
    assert asked.why_not() is None
    now[0] = readiness.TRUSTED
    assert asked.why_not() == "port 22 does not answer"
    assert asked.why_not() is None


def test_a_name_that_does_not_resolve_is_told_from_a_closed_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert "connection refused" in (answering.banner("127.0.0.1", port) or "")
    unknown = answering.banner("no-such-node.invalid") or ""
    assert "does not resolve" in unknown


def test_waiting_says_which_nodes_are_missing_and_when_that_changes() -> None:
    nodes = [Node(i, f"vision-{i}.vision") for i in range(3)]
    answers = {0: [], 1: ["no name"] * 3, 2: ["refused"] * 2}
    now, said = [0.0], list[str]()

    def probe(host: str) -> str | None:
        left = answers[int(host[7])]
        return left.pop() if left else None

    def sleep(seconds: float) -> None:
        now[0] += seconds

    gang.wait(nodes, 10, said.append, probe, lambda: now[0], sleep)
    both = "waiting for vision-1: no name; vision-2: refused"
    assert said == [both, "waiting for vision-1: no name"]


def test_an_owners_files_are_never_overwritten(tmp_path: Path) -> None:
    skeleton = tmp_path / "skel"
    skeleton.mkdir()
    (skeleton / ".bashrc").write_text("# Debian's\n")
    place = tmp_path / "home"
    (place / ".ssh").mkdir(parents=True)
    (place / ".bashrc").write_text("mine")
    (place / ".ssh/config").write_text("mine")
    (place / ".profile").symlink_to("nowhere")
    for _ in range(2):
        home.prepare(place, tmp_path, skeleton)
        assert (place / ".bashrc").read_text() == "mine"
        assert (place / ".ssh/config").read_text() == "mine"
        assert os.readlink(place / ".profile") == "nowhere"


def test_an_empty_home_has_a_shell_that_finds_the_workspace(tmp_path: Path) -> None:
    home.prepare(tmp_path, Path("/run/gpu-workspace"), tmp_path / "none")
    assert "WORKSPACE_PATH" in (tmp_path / ".profile").read_text()
    config = (tmp_path / ".ssh/config").read_text()
    assert config == "Include /run/gpu-workspace/ssh_config\n"


def test_keys_that_a_volume_made_writable_for_the_group_work_again(
    tmp_path: Path,
) -> None:
    folder = tmp_path / ".ssh"
    folder.mkdir()
    for name, mode in [("id_ed25519", 0o660), ("id_ed25519.pub", 0o664)]:
        (folder / name).touch()
        (folder / name).chmod(mode)
    home.prepare(tmp_path, tmp_path, tmp_path / "none")
    modes = {p.name: p.stat().st_mode & 0o777 for p in folder.iterdir()}
    assert modes["id_ed25519"] == 0o600 and modes["id_ed25519.pub"] == 0o644


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "home"
    file.touch()
    with pytest.raises(Failure, match="the home must be writable for uid"):
        home.prepare(file, tmp_path)


@pytest.mark.parametrize(
    ("line", "dropped"),
    [
        (b"Connection closed by 127.0.0.1 port 4711 [preauth]\r\n", True),
        (b"Connection closed by 10.0.0.9 port 4711 [preauth]\r\n", False),
        (b"Accepted publickey for developer from 127.0.0.1 port 4711 ssh2\r\n", False),
    ],
)
def test_the_log_shows_logins_and_not_probes(line: bytes, dropped: bool) -> None:
    assert bool(node_main.OF_PROBE.fullmatch(line)) is dropped


@pytest.mark.parametrize("name", ["sshd", "sshd-session", "bash", "tmux: server"])
def test_an_idle_session_does_not_hold_a_stopping_pod(name: str) -> None:
    assert node_main.WITHOUT_WORK.fullmatch(name)


def test_the_scripts_fit_into_a_configmap_and_can_be_run() -> None:
    files = [path for path in SCRIPTS.iterdir() if path.is_file()]
    # A ConfigMap may have 1 MiB, but etcd also has the composite's status and events.
    assert sum(path.stat().st_size for path in files) < 100 << 10
    for path in files:
        assert path.suffix == ".py" or path.stat().st_mode & 0o111, path
        if not path.suffix:
            assert path.read_text().startswith("#!/usr/bin/env python3\n")
