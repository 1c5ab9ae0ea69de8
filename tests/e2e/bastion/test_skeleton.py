"""A person without any credential of the cluster works through the bastion."""

import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bastion.door import HOSTILE, Door, Visitor, moment, requests
from cluster.workspaces import Workspaces
from environment.cluster import Cluster
from environment.objects import Refused
from environment.waiting import until

Enter = Callable[..., Visitor]


def test_a_person_creates_a_workspace_logs_in_and_deletes_it(
    alice: Workspaces, enter: Enter, door: Door, tmp_path: Path
) -> None:
    visitor = enter(alice)
    assert "cpu-small" in visitor.says("flavors")
    assert "is Ready" in visitor.says("create", "work", "cpu-small")
    inside = visitor.inside("work", visitor.workspace_key("work", tmp_path))
    ran = subprocess.run([*inside, "id -un"], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "developer\n"), ran.stderr
    assert "work" in visitor.says("list")
    assert "is deleted" in visitor.says("delete", "work", "--yes")

    records = door.records()
    mine = [one for one in records if one.get("user") == alice.owner]
    commands = [one["words"] for one in mine if one["event"] == "command"]
    assert ["create", "work", "cpu-small"] in commands
    assert ["connect", "work"] in commands
    opened = [one for one in mine if one["event"] == "connection.opened"]
    closed = [one for one in mine if one["event"] == "connection.closed"]
    assert len(opened) == len(closed) == 1
    assert opened[0]["workspace"] == "work.ws"
    assert closed[0]["up"] > 1_000 and closed[0]["down"] > 1_000
    numbers = [one["seq"] for one in records]
    assert numbers == sorted(numbers)


def test_every_request_of_the_bastion_is_in_its_own_log_before_the_api_server_has_it(
    alice: Workspaces, enter: Enter, door: Door
) -> None:
    visitor = enter(alice)
    assert visitor("create", "work", "no-such-flavor").returncode != 0
    visitor.says("list")
    # Other people work meanwhile. What the API server has must be in the log already.
    impersonated = [one for one in requests() if "impersonatedUser" in one]
    # Another test's pod, which is gone with its log.
    impersonated = [one for one in impersonated if pod_of(one) != HOSTILE]
    assert impersonated
    records = {
        one["auditId"]: one
        for replica in range(2)
        for one in door.records(replica)
        if one["event"] == "api.request"
    }
    for request in impersonated:
        record = records[request["auditID"]]
        assert record["path"] == request["requestURI"]
        assert moment(record["time"]) <= moment(request["requestReceivedTimestamp"])
        account = request["impersonatedUser"]["username"]
        assert account.endswith(":gpu-workspaces.owner")
        assert record["user"] in account


def pod_of(request: Any) -> str | None:
    """The pod whose token a request had."""
    extra = request["user"].get("extra", {})
    (pod,) = extra.get("authentication.kubernetes.io/pod-name", [None])
    return pod


def test_nobody_enters_an_account_with_another_key(
    alice: Workspaces, bob: Workspaces, enter: Enter, door: Door
) -> None:
    enter(alice)
    enter(bob)
    for name, key in [
        (alice.owner, bob.key),
        ("nobody-knows", bob.key),
        ("root", bob.key),
        ("gpu-bastion", bob.key),
    ]:
        refused = door.visitor(name, key)("whoami")
        assert refused.returncode == 255
        assert "Permission denied (publickey)" in refused.stderr


def test_a_person_reaches_nothing_of_another_one(
    alice: Workspaces, bob: Workspaces, enter: Enter
) -> None:
    theirs, mine = enter(alice), enter(bob)
    theirs.says("create", "secret", "cpu-small")
    for words in (
        ("connect", "secret"),
        ("connect", f"secret.{alice.namespace}"),
        ("connect", f"0.secret.{alice.namespace}.ws"),
        ("connect", "127.0.0.1"),
        ("connect", "kubernetes.default"),
        ("show", "secret"),
        ("stop", "secret"),
        ("delete", "secret", "--yes"),
        ("list", "--all-namespaces"),
        ("list", "--namespace", alice.namespace),
    ):
        refused = mine(*words)
        assert refused.returncode not in (0, 255), words
        assert "secret" not in refused.stdout
    assert "secret" in theirs.says("list")


def test_sshd_forwards_nothing_and_runs_nothing(
    alice: Workspaces, enter: Enter, tmp_path: Path
) -> None:
    visitor = enter(alice)
    for words in (
        ("sh",),
        ("/bin/sh", "-c", "id"),
        ("bash -i",),
        ("list; id",),
        ("list && id",),
        ("list | cat /etc/passwd",),
        ("list $(id)",),
        ("list `id`",),
        ("gpu-bastion", "broker"),
        ("gpu-bastion", "session", "--grant", "0"),
        ("/usr/bin/ssh", "localhost"),
        ("ssh", "-oProxyCommand=id", "x"),
        ("connect", "-oProxyCommand=id"),
        ("--help; id",),
        ("list\nid",),
        ("list \x1b[2J",),
        ("'",),
        ("cp", "/etc/passwd", "work:x"),
        ("create", "x", "-f", "/etc/passwd"),
        ("run", "work", "id"),
        ("x" * 100_000,),
    ):
        ran = visitor(*words)
        assert ran.returncode != 0, words
        assert "uid=" not in ran.stdout + ran.stderr
        assert "root:" not in ran.stdout + ran.stderr
    sftp = subprocess.run(
        ["sftp", *visitor.options(), f"{visitor.name}@{visitor.address}"],
        input="ls /\n",
        capture_output=True,
        text=True,
    )
    assert sftp.returncode != 0 and "etc" not in sftp.stdout
    for flags, said in (
        (("-W", "10.96.0.1:443"), "administratively prohibited"),
        (("-W", "127.0.0.1:22"), "administratively prohibited"),
        (("-N", "-R", "0:127.0.0.1:22"), "remote port forwarding failed"),
    ):
        strict = ("-o", "ExitOnForwardFailure=yes", *flags)
        forwarded = visitor(flags=strict)
        assert forwarded.returncode != 0, flags
        assert said in forwarded.stderr, forwarded.stderr


def enters(inside: list[str]) -> bool:
    ran = subprocess.run([*inside, "true"], capture_output=True, check=False)
    return ran.returncode == 0


def test_a_session_ends_when_the_person_or_the_key_goes(
    alice: Workspaces, enter: Enter, cluster: Cluster, tmp_path: Path
) -> None:
    visitor = enter(alice)
    visitor.says("create", "work", "cpu-small")
    inside = visitor.inside("work", visitor.workspace_key("work", tmp_path))
    for change, back in (
        ({"publicKeys": []}, {"publicKeys": [alice.key.public]}),
        ({"suspended": True}, {"suspended": None}),
    ):
        # The kubelet takes up to a minute until a pod has a changed key.
        until("the pod to have the key", lambda: enters(inside), 120)
        session = subprocess.Popen(
            [*inside, "echo in; sleep 300"], stdout=subprocess.PIPE, text=True
        )
        assert session.stdout is not None
        assert session.stdout.readline() == "in\n"
        patch = ("patch", "devuser", alice.owner, "--type=merge", "-p")
        cluster.kubectl(*patch, json.dumps({"spec": change}))
        began = time.monotonic()
        assert session.wait(timeout=60) != 0
        assert time.monotonic() - began < 10
        assert visitor("whoami").returncode == 255
        cluster.kubectl(*patch, json.dumps({"spec": back}))
        until("the person to be back", lambda: visitor("whoami").returncode == 0, 30)


def test_the_image_has_no_shell_and_the_session_no_token(
    door: Door, cluster: Cluster
) -> None:
    pod = door.pod()
    name = pod["metadata"]["name"]
    execute = ("exec", name, "-n", "gpu-bastion", "-c", "sshd", "--")
    for shell in ("sh", "bash", "dash", "/bin/sh", "busybox", "perl", "python3"):
        with pytest.raises(Refused):
            cluster.kubectl(*execute, shell, "-c", "true")
    (sshd,) = [one for one in pod["spec"]["containers"] if one["name"] == "sshd"]
    mounted = [one["mountPath"] for one in sshd["volumeMounts"]]
    authorities = "/etc/gpu-bastion-authorities"
    assert mounted == ["/run/gpu-bastion", "/run/systemd/userdb", authorities]
    assert pod["spec"]["automountServiceAccountToken"] is False
    shared = Path(f"/proc/{door.process('sshd')}/root/run/gpu-bastion")
    files = [one for one in shared.rglob("*") if one.is_file()]
    assert files and not [one for one in files if b"PRIVATE" in one.read_bytes()]


def test_people_get_aes_gcm_and_no_cipher_that_the_terrapin_attack_breaks(
    alice: Workspaces, enter: Enter
) -> None:
    visitor = enter(alice)
    ran = visitor("whoami", flags=("-v",))
    for direction in ("server->client", "client->server"):
        assert f"{direction} cipher: aes128-gcm@openssh.com " in ran.stderr
    refused = visitor("whoami", flags=("-c", "chacha20-poly1305@openssh.com"))
    assert refused.returncode == 255
    assert "no matching cipher found" in refused.stderr


def test_commands_share_the_login_of_one_connection_until_the_person_is_suspended(
    alice: Workspaces, enter: Enter, cluster: Cluster
) -> None:
    visitor = enter(alice)
    # The path of a socket has at most 107 characters (unix(7)).
    with tempfile.TemporaryDirectory() as folder:
        socket = ("-S", f"{folder}/bastion")
        with subprocess.Popen(visitor.line(flags=("-M", "-N", *socket))) as connection:
            try:
                until(
                    "the connection",
                    lambda: visitor(flags=("-O", "check", *socket)).returncode == 0,
                )
                for _ in range(2):
                    ran = visitor("whoami", flags=("-v", *socket))
                    assert (ran.returncode, alice.owner in ran.stdout) == (0, True)
                    assert "Authenticated" not in ran.stderr
                patch = ("patch", "devuser", alice.owner, "--type=merge", "-p")
                cluster.kubectl(*patch, json.dumps({"spec": {"suspended": True}}))
                until(
                    "the connection to be of no use",
                    lambda: visitor("whoami", flags=socket).returncode != 0,
                    10,
                )
            finally:
                connection.terminate()
