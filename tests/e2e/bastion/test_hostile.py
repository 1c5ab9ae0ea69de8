"""A hostile program takes the place of a person's session: it gets what its person may do,
and no more."""

import json
import subprocess
from collections.abc import Callable, Iterator

import pytest

from bastion.door import NAMESPACE, Door, Visitor
from bastion.held import Client, known_everywhere
from cluster.workspaces import Workspaces
from environment import registry
from environment.cluster import Cluster
from environment.objects import Object

NAME = "gpu-bastion-hostile"
# The failure of ssh's agent (draft-ietf-sshm-ssh-agent).
FAILURE = 5


def conquered(cluster: Cluster) -> Object:
    """A pod of the bastion whose sessions are hostile. The broker is the real one."""
    replicas = cluster.get("statefulset", "gpu-bastion", NAMESPACE)
    assert replicas is not None
    spec: Object = replicas["spec"]["template"]["spec"]
    (sshd,) = [one for one in spec["containers"] if one["name"] == "sshd"]
    sshd["image"] = registry.newest("images/hostile", "bastion")
    spec["volumes"].append({"name": "audit", "emptyDir": {}})
    for one in spec["containers"]:
        one.pop("lifecycle")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": spec,
    }


@pytest.fixture
def hostile(cluster: Cluster, door: Door) -> Iterator[Callable[[Workspaces], Client]]:
    """A person's way to sessions that are hostile."""
    cluster.apply(conquered(cluster))
    try:
        wait = ["wait", "pod", NAME, "-n", NAMESPACE, "--for=condition=Ready"]
        cluster.kubectl(*wait, "--timeout=120s")
        pod = cluster.get("pod", NAME, NAMESPACE)
        assert pod is not None
        address, known = pod["status"]["podIP"], known_everywhere(door)
        yield lambda person: Client(person.owner, person.key, address, known)
    finally:
        cluster.kubectl("delete", "pod", NAME, "-n", NAMESPACE, "--now")


def test_a_hostile_session_gets_nothing_beyond_its_person(
    alice: Workspaces,
    bob: Workspaces,
    enter: Callable[..., Visitor],
    hostile: Callable[[Workspaces], Client],
) -> None:
    enter(alice)
    enter(bob)
    other = subprocess.Popen(
        hostile(bob).line("stay"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == b"here\n"
        kind, key = bob.key.public.split()[:2]
        found = json.loads(hostile(alice).says("attack", bob.owner, kind, key))
        assert found["welcome"]["Welcome"]["namespace"] == alice.namespace
        # The other one's grant is there to read, and of no use.
        reasons = [one["Refused"]["reason"] for one in found["grants"]]
        assert reasons and set(reasons) == {"NotKnown"}
        assert found["keys"] == {"Keys": ""}
        assert "Welcome" not in found["second login"]
        assert found["listen"] == "unexpected end of file"
        assert found["drain"] == "operation would block"
        assert found["host key"] == FAILURE
        assert found["files"] == found["roots"] == []
        assert found["environments"] == []
        # Kernels without Yama let a process look into others of its user.
        assert "gpu-bastion" not in found["memory"]
        assert other.poll() is None, "the other session goes on"
    finally:
        other.kill()
        other.communicate()
