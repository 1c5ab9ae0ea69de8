"""Several people at the same time, each with a key and a namespace."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from cluster.conftest import deleted
from cluster.workspaces import Key, Workspaces
from environment.cluster import Cluster, is_ready
from environment.waiting import until


def dev_user(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "platform.acme.io/v1alpha1",
        "kind": "DevUser",
        "metadata": {"name": name},
        "spec": spec,
    }


@contextmanager
def people(
    cluster: Cluster, keys: Callable[[str], Key], count: int
) -> Iterator[list[Workspaces]]:
    """DevUsers that are made, and deleted, side by side."""
    made: list[Workspaces] = []
    for _ in range(count):
        name = f"dev{uuid.uuid4().hex[:6]}"
        key = keys(name)
        crossplane = {"compositionRef": {"name": "devusers"}}
        cluster.apply(dev_user(name, publicKeys=[key.public], crossplane=crossplane))
        made.append(Workspaces(cluster, f"dev-{name}", name, key))
    try:
        for user in made:
            # Claims are counted once their definition is a minute old.
            what = f"DevUser {user.owner} to be Ready"
            until(what, partial(_is_ready, user), seconds=120)
        yield made
    finally:
        for user in made:
            user.forget()
        for user in made:
            what = f"DevUser {user.owner} to be deleted"
            until(what, partial(deleted, cluster, user.owner), seconds=90)


def _is_ready(user: Workspaces) -> bool:
    return is_ready(user.cluster.get("devusers", user.owner, "default"))
