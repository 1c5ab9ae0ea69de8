"""Another program takes the place of sessions. A hostile one gets what its person may do,
and no more. One with a hole is found by the corpus of hostile lines."""

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bastion.door import HOSTILE, NAMESPACE, Door, Visitor
from bastion.held import Client, known_everywhere
from bastion.test_escapes import Hostile, classes
from cluster.workspaces import Workspaces
from environment import registry
from environment.cluster import Cluster
from environment.objects import Object

# There is one pod with another program, and each test creates it.
pytestmark = pytest.mark.xdist_group("hostile")

# The failure of ssh's agent (draft-ietf-sshm-ssh-agent).
FAILURE = 5
# Where `tests/hostile` looks for its hole.
HOLE = "/etc/gpu-bastion-hole"
SETTINGS = "etc/gpu-bastion/sshd_config"


def conquered(cluster: Cluster, hole: str) -> Object:
    """A pod of the bastion with another program for sessions. The broker is the real one."""
    replicas = cluster.get("statefulset", "gpu-bastion", NAMESPACE)
    assert replicas is not None
    spec: Object = replicas["spec"]["template"]["spec"]
    (sshd,) = [one for one in spec["containers"] if one["name"] == "sshd"]
    sshd["image"] = registry.newest("images/hostile", "bastion")
    spec["volumes"].append({"name": "audit", "emptyDir": {}})
    for one in spec["containers"]:
        one.pop("lifecycle")
    if hole:
        spec["volumes"].append({"name": "hole", "configMap": {"name": HOSTILE}})
        sshd["volumeMounts"] += [
            {"name": "hole", "mountPath": HOLE},
            {"name": "hole", "mountPath": f"/{SETTINGS}", "subPath": "sshd_config"},
        ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": HOSTILE, "namespace": NAMESPACE},
        "spec": spec,
    }


def planted(hole: str, settings: str) -> Object:
    """The ConfigMap with a hole, and sshd's settings, which have one kind of it."""
    if hole == "subsystems":
        settings += "Subsystem sftp internal-sftp\n"
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": HOSTILE, "namespace": NAMESPACE},
        "data": {"hole": hole, "sshd_config": settings},
    }


Sessions = Callable[[Workspaces], Client]


@contextmanager
def sessions(cluster: Cluster, door: Door, hole: str = "") -> Iterator[Sessions]:
    """A person's way to sessions of another program."""
    if hole:
        settings = Path(f"/proc/{door.process('sshd')}/root/{SETTINGS}").read_text()
        cluster.apply(planted(hole, settings))
    cluster.apply(conquered(cluster, hole))
    try:
        wait = ["wait", "pod", HOSTILE, "-n", NAMESPACE, "--for=condition=Ready"]
        cluster.kubectl(*wait, "--timeout=120s")
        pod = cluster.get("pod", HOSTILE, NAMESPACE)
        assert pod is not None
        address, known = pod["status"]["podIP"], known_everywhere(door)
        yield lambda person: Client(person.owner, person.key, address, known)
    finally:
        gone = ["delete", f"pod/{HOSTILE}", f"configmap/{HOSTILE}", "-n", NAMESPACE]
        cluster.kubectl(*gone, "--now", "--ignore-not-found")


def test_a_hostile_session_gets_nothing_beyond_its_person(
    alice: Workspaces,
    bob: Workspaces,
    enter: Callable[..., Visitor],
    cluster: Cluster,
    door: Door,
) -> None:
    enter(alice)
    enter(bob)
    with sessions(cluster, door) as hostile:
        other = subprocess.Popen(
            hostile(bob).line("stay"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == b"here\n"
            kind, key = bob.key.public.split()[:2]
            found = json.loads(hostile(alice).says("attack", bob.owner, kind, key))
            assert other.poll() is None, "the other session goes on"
        finally:
            other.kill()
            other.communicate()
    assert found["welcome"]["Welcome"]["namespace"] == alice.namespace
    # The other one's grant is there to read, and of no use.
    reasons = [one["Refused"]["reason"] for one in found["grants"]]
    assert reasons and set(reasons) == {"NotKnown"}
    assert found["keys"] == {"Keys": ""}
    assert "Welcome" not in found["second login"]
    assert found["listen"] == "unexpected end of file"
    assert found["drain"] == "operation would block"
    assert found["host key"] == FAILURE
    assert found["files"] == found["roots"] == found["environments"] == []
    # The programs of the image cannot be read, so their processes are closed to others.
    assert found["memory"] == []


@pytest.mark.parametrize("hole", ["programs", "expansions", "subsystems"])
def test_the_corpus_finds_a_planted_hole(
    hole: str,
    alice: Workspaces,
    enter: Callable[..., Visitor],
    cluster: Cluster,
    door: Door,
) -> None:
    enter(alice)
    with sessions(cluster, door, hole) as leaky:
        person = Hostile(leaky(alice), alice.namespace)
        for lines in classes():
            asyncio.run(person.send(lines[::-1]))
            if person.wrong:
                break
    print("\n".join(person.wrong))
    assert person.wrong
