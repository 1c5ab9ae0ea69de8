"""The released devctl is quick and small. Nothing runs beside the measurements."""

import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster.workspaces import Workspaces
from devctl.conftest import booted, of_user
from devctl.program import Devctl, installed
from environment.cluster import CLAIMS, Cluster

pytestmark = pytest.mark.alone

MIB = 1 << 20
WORKSPACES = 200
# The many workspaces are copies that Crossplane leaves alone.
PAUSED = {"crossplane.io/paused": "true"}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("released") / "devctl"
    build = ["cargo", "xtask", "devctl", "--release", path]
    subprocess.run(build, check=True, capture_output=True)
    return path


@pytest.fixture
def quick(released: Path, alice: Workspaces, tmp_path: Path) -> Devctl:
    return of_user(released, alice, tmp_path)


@pytest.fixture
def many(cluster: Cluster, quick: Devctl, tmp_path: Path) -> Iterator[Devctl]:
    """A namespace with many workspaces, each with the status of one that is Ready."""
    quick.says("create", "work", "cpu-small")
    claim = quick.object("show", "work")
    namespace = "many-workspaces"
    cluster.kubectl("create", "namespace", namespace)
    copies = [
        {
            "apiVersion": claim["apiVersion"],
            "kind": claim["kind"],
            "metadata": {
                "name": f"work-{number:03}",
                "namespace": namespace,
                "annotations": PAUSED,
            },
            "spec": {"parameters": claim["spec"]["parameters"]},
            "status": claim["status"],
        }
        for number in range(WORKSPACES)
    ]
    everything = json.dumps({"apiVersion": "v1", "kind": "List", "items": copies})
    cluster.kubectl("create", "-f", "-", stdin=everything)
    cluster.kubectl("replace", "--subresource=status", "-f", "-", stdin=everything)
    yield installed(quick.program, tmp_path / "admin", namespace, quick.key)
    cluster.kubectl("delete", "namespace", namespace)


def medians(times: int, *runs: Callable[[], object]) -> list[float]:
    """The median duration of each in seconds. They take turns, so that what else the
    machine does slows them equally. The first round fills caches."""
    took: list[list[float]] = [[] for _ in runs]
    for _ in range(times + 1):
        for run, durations in zip(runs, took, strict=True):
            begun = time.perf_counter()
            run()
            durations.append(time.perf_counter() - begun)
    return [statistics.median(durations[1:]) for durations in took]


def quiet(*words: str | Path, env: dict[str, str] | None = None) -> None:
    subprocess.run(
        words, check=True, stdin=subprocess.DEVNULL, capture_output=True, env=env
    )


def test_the_program_is_small_and_starts_at_once(released: Path) -> None:
    size = released.stat().st_size / MIB
    (took,) = medians(20, lambda: quiet(released, "--help"))
    print(f"{size:.1f} MiB; --help takes {took * 1000:.1f} ms")
    assert size <= 12
    assert took <= 0.020


def test_a_list_of_many_workspaces_is_as_quick_as_kubectls(many: Devctl) -> None:
    environment = many.variables()
    ours = ("list", "--namespace", many.namespace)
    names = many.says(*ours, "-o", "name").splitlines()
    assert len(names) == WORKSPACES
    theirs = ("kubectl", "get", CLAIMS, "-n", many.namespace)
    took, kubectl = medians(
        9,
        lambda: quiet(many.program, *ours, env=environment),
        lambda: quiet(*theirs, env=environment),
    )
    print(f"devctl {took * 1000:.0f} ms, kubectl {kubectl * 1000:.0f} ms")
    assert took <= 1.2 * kubectl


def test_the_proxy_delays_no_connection(quick: Devctl) -> None:
    booted(quick, "work")
    status = quick.object("show", "work")["status"]
    address = status.get("publicIp") or status["privateIp"]
    config = [*quick.configured(), "-i", str(quick.key.private)]
    quiet("ssh", *config, "work.ws", "true")
    known = quick.home / ".local/state/devctl/known_hosts"
    plain = [
        *("-F", "none", "-i", str(quick.key.private)),
        # ssh splits the value at blanks, and the home folder has some.
        *("-o", f'UserKnownHostsFile="{known}"', "-o", "HostKeyAlias=work.ws"),
    ]
    proxied, direct = medians(
        15,
        lambda: quiet("ssh", *config, "work.ws", "true"),
        lambda: quiet("ssh", *plain, f"developer@{address}", "true"),
    )
    print(f"by the proxy {proxied * 1000:.0f} ms, plain {direct * 1000:.0f} ms")
    assert proxied - direct <= 0.030


# A shell shows no candidates that come after two seconds.
def test_a_shell_completes_the_names_of_workspaces_and_flavors(quick: Devctl) -> None:
    def candidates(*words: str) -> list[str]:
        """The candidates for the last word, by the script of bash."""
        quoted = " ".join(f"'{word}'" for word in words)
        bash = f"""
            eval "$('{quick.program}' completion bash)"
            COMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1} COMP_TYPE=9
            _clap_complete_devctl devctl '{words[-1]}'
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        path = f"{quick.program.parent}:{os.environ['PATH']}"
        ran = subprocess.run(
            ["bash", "-c", bash],
            check=True,
            capture_output=True,
            text=True,
            env={**quick.variables(), "PATH": path},
        )
        return ran.stdout.split()

    quick.says("create", "alpha", "cpu-small", "--no-wait")
    quick.says("create", "beta", "cpu-small", "--no-wait")
    assert candidates("devctl", "stop", "al") == ["alpha"]
    assert candidates("devctl", "ssh", "")[:2] == ["alpha", "beta"]
    assert "cpu-small" in candidates("devctl", "create", "x", "--flavor", "cpu")
    assert candidates("devctl", "monit") == ["monitor"]
    nowhere = candidates("devctl", "stop", "--context", "none", "al")
    assert "alpha" not in nowhere
