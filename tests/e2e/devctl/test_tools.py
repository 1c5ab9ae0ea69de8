"""The tools that people use with SSH work with workspaces, and host keys are verified."""

import asyncio
import hashlib
import json
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import asyncssh
import pytest

from cluster.workspaces import Key, Workspaces
from devctl.program import Devctl
from environment.cluster import CLAIMS, Cluster
from environment.waiting import until

FILES = 10_000
# The size of a backend of JetBrains.
BACKEND_MIB = 500


@pytest.fixture(params=["pod", "instance"])
def workspace(
    request: pytest.FixtureRequest, devctl: Devctl, instance: Callable[..., str]
) -> str:
    """A workspace of each placement. The tools are the same."""
    name = f"tools-{request.param}"
    if request.param == "pod":
        devctl.says("create", name, "cpu-small")
    else:
        instance(name)
    return name


def run(
    *words: str | Path, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, input=stdin, capture_output=True, text=True, check=False, timeout=300
    )


def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
    return number


def test_the_tools_of_ssh_work(devctl: Devctl, workspace: str, tmp_path: Path) -> None:
    config = devctl.configured()
    config += ["-i", str(devctl.key.private)]
    host = f"{workspace}.ws"

    big = tmp_path / "a big file"
    big.write_bytes(os.urandom(32 << 20))
    digest = hashlib.sha256(big.read_bytes()).hexdigest()
    scp = run("scp", *config, big, f"{host}:big")
    assert scp.returncode == 0, scp.stderr
    there = run("ssh", *config, host, "sha256sum big")
    assert there.stdout.split()[0] == digest, there.stderr
    back = devctl("cp", f"{workspace}:big", str(tmp_path / "back"))
    assert back.returncode == 0, back.stderr
    assert (tmp_path / "back").read_bytes() == big.read_bytes()
    sftp = run("sftp", *config, "-b", "-", host, stdin="ls big\n")
    assert sftp.returncode == 0 and "big" in sftp.stdout, sftp.stderr

    forwarded = port()
    listen = "import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=8123)"
    script = f"cd /tmp && exec python3 -c '{listen}' >/dev/null 2>&1"
    server = subprocess.Popen(
        ["ssh", *config, "-L", f"{forwarded}:127.0.0.1:8123", host, script],
        stdin=subprocess.DEVNULL,
    )
    try:
        until("the forwarded port", lambda: answers(forwarded), 30)
    finally:
        server.kill()

    back = port()
    with socket.create_server(("127.0.0.1", back)) as here:
        here.settimeout(30)
        connect = f"import socket; socket.create_connection(('127.0.0.1', {back}))"
        # ssh ends when the forwarded connection does.
        far = subprocess.Popen(
            [
                *("ssh", *config, "-R", f"{back}:127.0.0.1:{back}", host),
                f'python3 -c "{connect}"',
            ],
            stdin=subprocess.DEVNULL,
        )
        here.accept()[0].close()
        assert far.wait(60) == 0

    control = tmp_path / "control"
    master = ["-o", "ControlMaster=auto", "-o", f"ControlPath={control}"]
    # The master keeps its standard streams open as long as it lives.
    first = subprocess.run(
        ["ssh", *config, *master, "-o", "ControlPersist=20", host, "true"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert first.returncode == 0
    assert control.exists()
    assert run("ssh", *config, *master, host, "echo on").stdout == "on\n"
    run("ssh", *config, *master, "-O", "exit", host)

    told = run("ssh", *config, "-v", host, "true").stderr
    assert "server->client cipher: aes128-gcm@openssh.com" in told, "copies are slow"


def test_an_editors_way_in_works(devctl: Devctl, workspace: str) -> None:
    """VS Code's Remote - SSH runs a script by bash, and reaches it by a SOCKS proxy."""
    config = [*devctl.configured(), "-i", str(devctl.key.private)]
    proxy = port()
    script = "echo listening; exec sleep 300\n"
    editor = subprocess.Popen(
        ["ssh", *config, "-T", "-D", str(proxy), f"{workspace}.ws", "bash"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert editor.stdin is not None and editor.stdout is not None
        editor.stdin.write(script)
        editor.stdin.flush()
        assert editor.stdout.readline() == "listening\n"
        # SOCKS5, no authentication, CONNECT to sshd of the workspace itself.
        with socket.create_connection(("127.0.0.1", proxy), timeout=20) as socks:
            socks.sendall(b"\x05\x01\x00")
            assert socks.recv(2) == b"\x05\x00"
            socks.sendall(b"\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x16")
            assert socks.recv(10)[1] == 0
            assert socks.recv(8).startswith(b"SSH-2.0")
    finally:
        editor.kill()


def test_a_jetbrains_gateways_order_works(
    devctl: Devctl, workspace: str, tmp_path: Path
) -> None:
    """Gateway has an SSH library of its own. It runs commands, uploads its backend, and
    forwards a port, all over one connection at the same time."""
    _, config = devctl.configured()
    link = devctl.says("jetbrains", workspace, "--no-open")
    assert f"host={workspace}.ws&" in link
    backend = tmp_path / "backend.tar.gz"
    chunk = os.urandom(1 << 20)
    with backend.open("wb") as file:
        for _ in range(BACKEND_MIB):
            file.write(chunk)
    digest = hashlib.sha256(backend.read_bytes()).hexdigest()

    async def together() -> None:
        async with asyncssh.connect(
            f"{workspace}.ws", config=[config], client_keys=[str(devctl.key.private)]
        ) as connection:
            forwarded = await connection.forward_local_port(
                "127.0.0.1", 0, "127.0.0.1", 22
            )
            async with connection.start_sftp_client() as sftp:
                upload = asyncio.create_task(sftp.put(str(backend), "backend.tar.gz"))
                system = await connection.run("uname -s", check=True)
                assert system.stdout == "Linux\n"
                there, back = await asyncio.open_connection(
                    "127.0.0.1", forwarded.get_port()
                )
                assert (await there.readline()).startswith(b"SSH-2.0")
                assert not upload.done(), "the upload ended before the others began"
                back.close()
                await upload
            summed = await connection.run("sha256sum backend.tar.gz", check=True)
            assert str(summed.stdout).split()[0] == digest

    asyncio.run(together())


def test_the_agent_with_the_users_keys_is_forwarded_only_if_asked_for(
    devctl: Devctl, workspace: str
) -> None:
    config = [*devctl.configured(), "-i", str(devctl.key.private)]
    # The first message of the agent's protocol, and the type of its answer
    # (draft-ietf-sshm-ssh-agent, SSH_AGENT_IDENTITIES_ANSWER is 12).
    ask = (
        "import os, socket, struct; s = socket.socket(socket.AF_UNIX);"
        's.connect(os.environ["SSH_AUTH_SOCK"]); s.sendall(struct.pack(">IB", 1, 11));'
        "print(s.recv(5)[4])"
    )
    remote = f"python3 -c '{ask}'"
    with_agent: list[str | Path] = [
        "ssh-agent",
        "sh",
        "-c",
        'ssh-add -q "$0" && exec ssh "$@"',
    ]
    line: list[str | Path] = [*with_agent, devctl.key.private, *config]
    forwarded = run(*line, "-A", f"{workspace}.ws", remote)
    assert forwarded.stdout == "12\n", forwarded.stderr
    not_forwarded = run(*line, f"{workspace}.ws", remote)
    assert not_forwarded.returncode != 0 and "SSH_AUTH_SOCK" in not_forwarded.stderr


def test_many_files_go_by_rsync(devctl: Devctl, workspace: str, tmp_path: Path) -> None:
    config = [*devctl.configured(), "-i", str(devctl.key.private)]
    shell = " ".join(f"'{word}'" for word in ("ssh", *config))
    tree = tmp_path / "tree"
    for number in range(FILES):
        file = tree / str(number % 100) / f"{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(str(number))
    copied = run("rsync", "-a", "-e", shell, f"{tree}/", f"{workspace}.ws:tree/")
    assert copied.returncode == 0, copied.stderr
    count = run("ssh", *config, f"{workspace}.ws", "find tree -type f | wc -l")
    assert int(count.stdout) == FILES


def test_git_goes_over_ssh(devctl: Devctl, workspace: str, tmp_path: Path) -> None:
    config = [*devctl.configured(), "-i", str(devctl.key.private)]
    shell = " ".join(f"'{word}'" for word in ("ssh", *config))
    made = run("ssh", *config, f"{workspace}.ws", "git init -q --bare repository")
    assert made.returncode == 0, made.stderr
    here = tmp_path / "clone"
    environment = {**os.environ, "GIT_SSH_COMMAND": shell}
    for words in (
        ("clone", "-q", f"{workspace}.ws:repository", str(here)),
        ("-C", str(here), "commit", "-q", "--allow-empty", "-m", "x"),
        ("-C", str(here), "push", "-q", "origin", "HEAD"),
    ):
        author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        done = subprocess.run(
            ["git", *author, *words], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr


def test_a_swapped_host_key_is_refused_and_a_new_claim_is_not(
    devctl: Devctl, cluster: Cluster
) -> None:
    devctl.says("create", "swapped", "cpu-small")
    devctl.says("ssh", "swapped", "--", "true")
    state = devctl.home / ".local/state/devctl/known_hosts"
    known = state.read_text()
    # The claim has another key than the one with which this machine got to know it.
    other = Key.generate(devctl.home, "other").public.split()[1]
    state.write_text(known.replace(known.split()[2], other))
    refused = devctl.refused(255, "ssh", "swapped", "--", "true")
    assert "workspace " in refused and "its host key changed" in refused
    assert "devctl known-hosts --forget swapped" in refused

    devctl.says("delete", "swapped", "--yes")
    cluster.kubectl(
        "wait",
        CLAIMS,
        "swapped",
        "-n",
        devctl.namespace,
        "--for=delete",
        "--timeout=60s",
    )
    devctl.says("create", "swapped", "cpu-small")
    devctl.says("ssh", "swapped", "--", "true")


def test_a_swapped_pod_is_refused_by_name(
    devctl: Devctl, alice: Workspaces, cluster: Cluster
) -> None:
    devctl.says("create", "moved", "cpu-small")
    devctl.says("ssh", "moved", "--", "true")
    (pod,) = alice.pods("moved")
    containers = pod["spec"]["initContainers"] + pod["spec"]["containers"]
    variables = [one for each in containers for one in each.get("env", [])]
    secret = next(
        one["value"] for one in variables if one["name"] == "WORKSPACE_SECRET"
    )
    # Another pod that answers in the place of this one has another key.
    other = Key.generate(devctl.home, "other")
    keys = {
        "ssh_host_ed25519_key": other.private.read_text(),
        "ssh_host_ed25519_key.pub": other.public + "\n",
    }
    known = cluster.get("secret", secret, devctl.namespace)
    assert known is not None and keys.keys() <= known["data"].keys()
    patch = json.dumps({"stringData": keys})
    here = ("-n", devctl.namespace)
    cluster.kubectl("patch", "secret", secret, *here, "--type=merge", "-p", patch)
    cluster.kubectl("delete", "pod", pod["metadata"]["name"], *here)

    def refused() -> bool:
        ran = devctl("ssh", "moved", "--", "true")
        assert ran.returncode != 0, "devctl logged in to a pod with another key"
        return "workspace " in ran.stderr and "its host key changed" in ran.stderr

    until("devctl to refuse the pod", refused, 120)


def answers(number: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", number), timeout=2) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return connection.recv(4) == b"HTTP"
    except OSError:
        return False
