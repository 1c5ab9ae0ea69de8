"""Logins to a workspace, and the environment of a session."""

import json
from dataclasses import replace
from pathlib import Path

from on_cluster import ssh, work, workspaces
from on_cluster.ssh import Login
from on_cluster.workspaces import NAMESPACE, Workspace, kubectl, until

IMPORT = "import torch, cv2; print(torch.__version__, cv2.__version__)"


def test_the_owner_gets_pytorch_and_opencv_that_import(
    gang: Workspace, login: Login
) -> None:
    said = login.run(gang.address(0), f"python -c '{IMPORT}'").stdout.split()
    assert said[1] == "4.8.0"
    # The programs must also be found in a login shell, where /etc/profile sets PATH.
    shell = f"bash -lc \"python -c '{IMPORT}'\""
    assert login.run(gang.address(0), shell).stdout.split() == said


def test_both_libraries_work_in_one_process(gang: Workspace, login: Login) -> None:
    program = (
        "import cv2, numpy, torch\n"
        "picture = numpy.zeros((64, 64, 3), numpy.uint8)\n"
        "cv2.circle(picture, (32, 32), 9, (255, 255, 255), -1)\n"
        "small = cv2.resize(cv2.imdecode(cv2.imencode('.png', picture)[1], 1), (8, 8))\n"
        "batch = torch.from_numpy(small).float().permute(2, 0, 1)[None]\n"
        "print(torch.nn.Conv2d(3, 2, 3)(batch).shape)\n"
    )
    done = login.run(gang.address(0), "python -", given=program)
    assert done.stdout.strip() == "torch.Size([1, 2, 6, 6])"


def test_somebody_elses_key_opens_nothing(
    gang: Workspace, login: Login, keys: Path
) -> None:
    other = replace(login, key=keys / "other")
    refused = other.run(gang.address(0), "true", check=False)
    assert refused.returncode == 255
    assert "Permission denied (publickey)" in refused.stderr


def test_a_machine_with_another_host_key_is_not_talked_to(
    gang: Workspace, login: Login, keys: Path
) -> None:
    wrong = ssh.known(keys / "wrong_hosts", (keys / "other.pub").read_text())
    refused = replace(login, known_hosts=wrong).run(
        gang.address(0), "true", check=False
    )
    assert refused.returncode == 255
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in refused.stderr


def test_a_file_that_is_copied_by_scp_arrives(
    gang: Workspace, login: Login, tmp_path: Path
) -> None:
    file = tmp_path / "data"
    file.write_text("some data\n")
    login.copy(file, gang.address(1), "data")
    assert login.run(gang.address(1), "cat data").stdout == "some data\n"


def test_a_terminal_works(gang: Workspace, login: Login) -> None:
    said = login.in_terminal(gang.address(0), "tty && echo $WORKSPACE_NAME")
    assert said.split() == ["/dev/pts/0", "gang"]


def test_sessions_have_the_containers_variables(gang: Workspace, login: Login) -> None:
    for index in range(gang.nodes):
        said = login.run(gang.address(index), "env").stdout.splitlines()
        found = dict(line.split("=", 1) for line in said if "=" in line)
        assert found["PET_NODE_RANK"] == str(index)
        assert found["PET_NNODES"] == "2"
        assert found["PET_MASTER_ADDR"].startswith("gang-0.gang.")
        assert found["NCCL_DEBUG"] == "WARN"
        assert found["HOME"] == "/home/developer"
        first = found["PATH"].split(":")[:2]
        assert first == ["/opt/workspace/venv/bin", "/opt/gpu-workspace/bin"]
        assert not [name for name in found if name.startswith("KUBERNETES_")]
        assert found["NASTY"] == work.NASTY


def test_what_the_owner_installs_with_pip_goes_to_the_home(
    gang: Workspace, login: Login
) -> None:
    said = login.run(gang.address(0), "python -m site --user-site").stdout
    assert said.startswith("/home/developer/.local/")
    done = login.run(gang.address(0), "touch /opt/workspace/venv/x", check=False)
    assert done.returncode != 0


def test_a_pods_token_is_out_of_the_owners_reach(gang: Workspace, login: Login) -> None:
    done = login.run(gang.address(0), "ls /var/run/secrets", check=False)
    assert done.returncode != 0


def test_a_key_that_is_added_later_opens_a_running_workspace(
    gang: Workspace, login: Login, keys: Path, owner: str
) -> None:
    other = (keys / "other.pub").read_text().strip()
    _authorize([owner, other])
    try:
        late = replace(login, key=keys / "other")

        def opens() -> bool:
            return not late.run(gang.address(0), "true", check=False).returncode

        until("the kubelet to refresh authorized_keys", opens)
    finally:
        _authorize([owner])


def _authorize(public: list[str]) -> None:
    change = {"data": {"authorized_keys": "".join(f"{key}\n" for key in public)}}
    patch = ["patch", "configmap", "gang-keys", "-p", json.dumps(change)]
    kubectl("-n", NAMESPACE, *patch)


def test_a_pod_that_comes_back_has_the_same_host_key(
    gang: Workspace, login: Login
) -> None:
    before, uid = gang.secret(), gang.pod("gang-1")["metadata"]["uid"]
    gang.delete_pod(1)
    until("gang-1 to be another pod", lambda: _another(gang, uid))
    gang.wait()
    assert gang.secret() == before
    assert login.run(gang.address(1), "hostname").stdout.strip() == "gang-1"


def _another(gang: Workspace, uid: str) -> bool:
    found = gang.pod("gang-1").get("metadata", {}).get("uid", uid)
    return bool(found != uid)


def test_an_idle_pod_stops_at_once(gang: Workspace) -> None:
    # kubectl waits until the pod is gone. The pod's grace period is 30 s.
    kubectl("-n", NAMESPACE, "delete", "pod", "gang-1", "--timeout=15s")
    gang.wait()


def test_many_pods_that_start_at_once_agree_on_one_host_key(
    image: str, owner: str, gang: Workspace
) -> None:
    many = workspaces.apply("many", image, [owner], nodes=6)
    try:
        many.wait(300)
        public = set()
        for pod in many.pods():
            read = ["cat", "/run/gpu-workspace/ssh_host_ed25519_key.pub"]
            public.add(kubectl("-n", NAMESPACE, "exec", pod, "--", *read))
        assert public == {many.secret()["ssh_host_ed25519_key.pub"]}
    finally:
        workspaces.delete("many")
