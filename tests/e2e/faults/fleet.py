"""The pools of a run: the wanted state of each, and the edits of people."""

import json
import uuid
from dataclasses import dataclass, replace
from random import Random
from threading import RLock
from typing import Any

from environment.cluster import Cluster
from environment.configurations import Reference
from environment.objects import Object
from environment.pools import API

IMAGES = ("ami-00000000000c0de01", "ami-00000000000c0de04")
# The pools whose configuration names a queue with EC2's events.
QUEUED = ("warned", "drifting")
FLEETING = ("fleeting-1", "fleeting-2", "fleeting-3")
RESIZED = "resized"
CIDRS = ("198.51.100.0/24", "203.0.113.0/24")


def _size(minimum: int, maximum: int, idle: int) -> dict[str, int]:
    return {"minimum": minimum, "maximum": maximum, "idle": idle}


SPECS: dict[str, dict[str, Any]] = {
    "steady": {"size": _size(1, 3, 2), "ssh": {"allowedCidrs": [CIDRS[0]]}},
    "warned": {
        "size": _size(1, 4, 2),
        "typePreference": "Any",
        "replace": {"rebalance": "ReplaceFirst"},
    },
    "falling-back": {
        "size": _size(1, 3, 2),
        "capacityType": "SpotWithFallback",
        "fallback": {"after": "2s"},
    },
    "drifting": {"size": _size(1, 3, 2), "replace": {"drifted": True}},
    # All three sizes are equal, so that every surplus instance exceeds the maximum.
    "exact": {"size": _size(2, 2, 2), "spread": {"zones": True}},
    RESIZED: {"size": _size(1, 3, 2)},
    **{name: {"size": _size(1, 2, 1)} for name in FLEETING},
}


@dataclass(frozen=True)
class Wanted:
    """A pool that exists, or that was deleted, and its wanted state."""

    name: str
    uid: str
    spec: dict[str, Any]
    # The largest maximum since the test last saw the pool as its spec wants.
    ceiling: int
    is_deleted: bool = False

    @property
    def target(self) -> int:
        size = self.spec["size"]
        return int(min(max(size["idle"], size["minimum"]), size["maximum"]))

    @property
    def replaces_drift(self) -> bool:
        return bool(self.spec.get("replace", {}).get("drifted"))


class Fleet:
    """The pools of a run. Several threads use it at the same time."""

    def __init__(
        self, cluster: Cluster, namespace: str, plain: Reference, queued: Reference
    ) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self._plain = plain
        self._queued = queued
        self._lock = RLock()
        self._wanted: dict[str, Wanted] = {}

    def every(self) -> list[Wanted]:
        """All pools of the run, also the deleted ones."""
        with self._lock:
            return list(self._wanted.values())

    def existing(self) -> list[Wanted]:
        return [pool for pool in self.every() if not pool.is_deleted]

    def create(self, name: str) -> bool:
        """Creates a pool. Returns False while a pool of this name exists, or is being
        deleted."""
        with self._lock:
            if self.cluster.get("spotpool", name, self.namespace) is not None:
                return False
            spec = {
                "region": "us-east-1",
                "instanceTypes": ["g4dn.xlarge", "g5.xlarge"],
                "image": {"id": IMAGES[0]},
                "capacityType": "Spot",
                **SPECS[name],
            }
            created = self._apply(name, spec)
            uid = created["metadata"]["uid"]
            self.expect(Wanted(name, uid, spec, spec["size"]["maximum"]))
            return True

    def expect(self, pool: Wanted) -> None:
        with self._lock:
            self._wanted[pool.uid] = pool

    def edit(self, pool: Wanted, **changes: Any) -> None:
        """Applies a changed spec, unless the pool was deleted in the meantime."""
        with self._lock:
            pool = self._wanted[pool.uid]
            if pool.is_deleted:
                return
            spec = {**pool.spec, **changes}
            ceiling = max(pool.ceiling, spec["size"]["maximum"])
            self._wanted[pool.uid] = replace(pool, spec=spec, ceiling=ceiling)
            self._apply(pool.name, spec)

    def delete(self, pool: Wanted) -> None:
        with self._lock:
            self._wanted[pool.uid] = replace(self._wanted[pool.uid], is_deleted=True)
            self.cluster.kubectl(
                *("delete", "spotpool", pool.name, "-n", self.namespace),
                *("--wait=false", "--ignore-not-found"),
            )

    def settle(self) -> None:
        """To be called when every pool is as its spec wants. From then on a pool may
        have no more instances than its current maximum."""
        with self._lock:
            for uid, pool in self._wanted.items():
                maximum = pool.spec["size"]["maximum"]
                self._wanted[uid] = replace(pool, ceiling=maximum)

    def stored(self) -> dict[str, Object]:
        """The pools that the API server has, by UID."""
        pools = self.cluster.all("spotpools", self.namespace)
        return {pool["metadata"]["uid"]: pool for pool in pools}

    def _apply(self, name: str, spec: dict[str, Any]) -> Object:
        config = self._queued if name in QUEUED else self._plain
        document = {
            "apiVersion": API,
            "kind": "SpotPool",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "forProvider": spec,
                "providerConfigRef": config,
            },
        }
        applied = self.cluster.kubectl(
            *("apply", "-f", "-", "-o", "json"), stdin=json.dumps(document)
        )
        stored: Object = json.loads(applied)
        return stored


def another_size(pool: Wanted, dice: Random) -> dict[str, int]:
    """A random size within the pool's bounds. The pool `resized` gets other bounds."""
    size = pool.spec["size"]
    if pool.name == RESIZED:
        maximum = dice.randint(1, 5)
        return _size(dice.randint(0, maximum), maximum, dice.randint(0, maximum))
    return {**size, "idle": dice.randint(size["minimum"], size["maximum"])}


def another_template(pool: Wanted, dice: Random) -> dict[str, Any]:
    """Another image, other user data, or, if the pool has SSH rules, other rules."""
    if "ssh" in pool.spec and dice.random() < 0.5:
        return {"ssh": {"allowedCidrs": dice.sample(CIDRS, dice.randint(1, 2))}}
    if dice.random() < 0.5:
        return {"image": {"id": dice.choice(IMAGES)}}
    mark = uuid.UUID(int=dice.getrandbits(128))
    return {"userData": f"#cloud-config\n# {mark}\n"}
