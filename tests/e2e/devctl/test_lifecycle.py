"""Stop, start, extend and delete, and what they say."""

from collections.abc import Callable
from datetime import datetime

import pytest

from cluster.workspaces import Workspaces
from devctl.program import Devctl


def test_stop_start_and_extend_are_annotations(
    devctl: Devctl, alice: Workspaces
) -> None:
    devctl.says("create", "work", "cpu-small", "--home", "1Gi", "--lifetime", "2h")
    before = devctl.object("show", "work")
    stops = before["status"]["lifecycle"]["stopsAt"]
    extended = devctl.says("extend", "work", "30m")
    until = datetime.fromisoformat(extended.split(" until ")[1].split(",")[0].strip())
    assert (until - datetime.fromisoformat(stops)).total_seconds() == 1800
    limited = devctl.says("extend", "work", "20h")
    assert "not until" in limited
    assert devctl.says("stop", "work") == "work is stopped; its home stays\n"
    assert alice.pods("work") == []
    assert "already" in devctl.says("stop", "work")
    refused = devctl.refused(7, "ssh", "work")
    assert "devctl start work" in refused
    assert devctl.says("start", "work") == "work is Ready\n"
    assert devctl.says("ssh", "work", "--", "id", "-un").strip() == "developer"
    after = devctl.object("show", "work")
    assert after["spec"]["parameters"] == before["spec"]["parameters"]


def test_a_workspace_that_is_idle_can_be_extended(devctl: Devctl) -> None:
    """An extension is about the longest run, which ends long after the idle stop."""
    devctl.says("create", "work", "cpu-small", "--lifetime", "3h", "--idle", "1h")
    lifecycle = devctl.object("show", "work")["status"]["lifecycle"]
    assert lifecycle["stopsBecause"] == "Idle"
    extended = devctl("extend", "work", "30m")
    assert extended.returncode == 0 and "it is idle" in extended.stderr
    until = datetime.fromisoformat(
        extended.stdout.split(" until ")[1].split(",")[0].strip()
    )
    started = datetime.fromisoformat(lifecycle["startedAt"])
    assert (until - started).total_seconds() == 3 * 3600 + 1800


def test_a_deleted_workspace_says_what_stays(devctl: Devctl, alice: Workspaces) -> None:
    devctl.says("create", "work", "cpu-small", "--home", "1Gi")
    # Nobody can be asked, and files would be lost.
    refused = devctl.refused(2, "delete", "work", "--home")
    assert "1 home with all files are lost" in refused
    assert "policy" in devctl.says("delete", "work")
    assert alice.homes("work")
    devctl.says("create", "work", "cpu-small", "--home", "1Gi")
    devctl.says("delete", "work", "--home", "--yes")
    assert alice.homes("work") == []


def test_a_person_sees_only_what_is_theirs(
    devctl: Devctl, bob: Workspaces, installed_for: Callable[[Workspaces], Devctl]
) -> None:
    mine = devctl.object("whoami")
    assert mine["namespace"] == devctl.namespace
    assert mine["owner"] == devctl.namespace.removeprefix("dev-")
    assert mine["rights"] == ["get", "create", "patch", "delete"]
    assert mine["publicKeys"] == [devctl.key.public]
    theirs = installed_for(bob)
    refused = theirs.refused(4, "list", "--namespace", devctl.namespace)
    assert "forbidden" in refused and "--namespace" in refused
    assert "cpu-small" in theirs.says("flavors")
    hidden = theirs.object("whoami", "--namespace", devctl.namespace)
    assert (hidden["owner"], hidden["rights"], hidden["publicKeys"]) == (None, [], None)


@pytest.mark.parametrize("words", [["list"], ["show", "a"], ["why", "a"]])
def test_without_a_cluster_there_is_a_word_and_a_code(
    devctl: Devctl, words: list[str]
) -> None:
    kubeconfig = devctl.home / "kubeconfig"
    text = kubeconfig.read_text()
    kubeconfig.write_text(
        text.replace("server: https://", "server: https://127.0.0.1:1/")
    )
    said = devctl.refused(9, *words, seconds=60)
    assert "the API server does not answer" in said
    kubeconfig.unlink()
    assert "kubeconfig" in devctl.refused(8, *words)
