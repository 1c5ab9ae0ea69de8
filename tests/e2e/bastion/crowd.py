"""Many people at once. Each has a name of their own; all have one key."""

import json
import uuid
from collections.abc import Sequence

from cluster.workspaces import HOST_NETWORK, Key, Workspaces
from environment.cluster import CLAIMS, Cluster, is_ready
from environment.objects import Object, Refused
from environment.platform import claim
from environment.waiting import until

# Many pods of this size fit into the processors and the memory of one machine.
SMALL = {"cpu": "10m", "memory": "216Mi"}


def create(cluster: Cluster, number: int, key: Key) -> list[Workspaces]:
    """DevUsers, which are not Ready yet."""
    run = uuid.uuid4().hex[:4]
    names = [f"crowd{run}{index:03}" for index in range(number)]
    users = [
        {
            "apiVersion": "platform.acme.io/v1alpha1",
            "kind": "DevUser",
            "metadata": {"name": name},
            "spec": {
                "publicKeys": [key.public],
                "quota": {},
                "crossplane": {"compositionRef": {"name": "devusers"}},
            },
        }
        for name in names
    ]
    _apply(cluster, users)
    return [Workspaces(cluster, f"dev-{name}", name, key) for name in names]


def await_ready(people: Sequence[Workspaces]) -> None:
    cluster = people[0].cluster
    names = {one.owner for one in people}

    def not_ready() -> set[str]:
        users = cluster.all("devusers", "default")
        return names - {one["metadata"]["name"] for one in users if is_ready(one)}

    until(
        "the DevUsers to be Ready",
        lambda: not not_ready(),
        120 + 5 * len(people),
        period=1,
        instead=not_ready,
    )


def claim_each(
    people: Sequence[Workspaces], name: str, composition: str = "gpudevworkspaces"
) -> None:
    """A small workspace for each of the people. Returns when all are Ready."""
    parameters = {
        "placement": "Cluster",
        "flavor": "cpu-small",
        "ssh": {"allowedCidrs": [HOST_NETWORK]},
        "overrides": SMALL,
    }
    cluster = people[0].cluster
    claims = [
        claim(one.namespace, name, {"owner": one.owner, **parameters}) for one in people
    ]
    for one in claims:
        one["spec"]["compositionRef"] = {"name": composition}
    _apply(cluster, claims)
    # Crossplane takes a hundred of them in a quarter of an hour.
    for one in people:
        one.ready(name, 120 + 10 * len(people))


def forget(people: Sequence[Workspaces]) -> None:
    """Deletes people with all that is theirs."""
    for one in people:
        if one.cluster.all(CLAIMS, one.namespace):
            one.forget()
    cluster = people[0].cluster
    names = {one.owner for one in people}

    def left() -> set[str]:
        users = cluster.all("devusers", "default")
        return names & {one["metadata"]["name"] for one in users}

    def gone() -> bool:
        if not left():
            return True
        try:
            cluster.kubectl(
                *("delete", "devusers", "--wait=false", "--ignore-not-found"),
                *sorted(left()),
            )
        except Refused as refused:
            # The protection notices some time later that a workspace is gone.
            assert "in-use" in str(refused), refused
        return False

    until("the people to be deleted", gone, 120 + 5 * len(people), 2, left)


def _apply(cluster: Cluster, documents: list[Object]) -> None:
    everything = {"apiVersion": "v1", "kind": "List", "items": documents}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(everything))
