"""Kubernetes replaces a replica in which people work."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bastion.door import NAMESPACE, Door, Visitor
from bastion.held import Client, Held, PROMPT, known_everywhere, stream
from cluster.workspaces import Workspaces
from environment.cluster import Cluster
from environment.waiting import until


def served(cluster: Cluster) -> set[str]:
    """The addresses to which the Service sends people."""
    label = "kubernetes.io/service-name=gpu-bastion"
    return {
        address
        for one in cluster.all("endpointslices", NAMESPACE, label)
        for endpoint in one.get("endpoints") or []
        if endpoint["conditions"]["ready"]
        for address in endpoint["addresses"]
    }


# Other tests enter the replica that this one replaces.
@pytest.mark.alone
def test_who_works_in_a_replica_that_is_replaced_goes_on_and_leaves_by_themselves(
    alice: Workspaces,
    enter: Callable[..., Visitor],
    door: Door,
    cluster: Cluster,
    tmp_path: Path,
) -> None:
    visitor = enter(alice)
    alice.claim("work")
    alice.ready("work", seconds=180)
    inside = visitor.workspace_key("work", tmp_path)
    old, address = door.pod(0)["metadata"]["uid"], door.address(0)
    known = known_everywhere(door)
    at = Client(alice.owner, alice.key, address, known)
    held = [Held(kind, lambda _: at) for kind in (PROMPT, stream("work", inside))]
    try:
        assert [one.enter([0]) for one in held] == [True, True]
        prompt = held[0]
        cluster.kubectl(
            "delete", "pod", "gpu-bastion-0", "-n", NAMESPACE, "--wait=false"
        )
        assert prompt.shows("This bastion is about to be replaced")
        until("the Service to leave it out", lambda: address not in served(cluster))
        assert served(cluster) == {door.address(1)}
        assert all(one.answers() for one in held)
        assert door.pod(0)["metadata"]["uid"] == old
    finally:
        for one in held:
            one.close()
    until("another pod", lambda: door.ready(0) not in (None, old), 60)
