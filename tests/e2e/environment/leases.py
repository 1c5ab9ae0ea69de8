"""Leases of instances, with the actions of their owners."""

from typing import Any

from .cluster import Cluster, condition, is_ready
from .objects import Object
from .pools import API
from .waiting import until

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBCVgX+0dcYc9xayu4odASu0JSTG3EpPB3mVCskQ8ZNI"


class Leases:
    """The leases of one namespace, by default of the pool `shared`."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace

    def ask(self, name: str, pool: str = "shared", **parameters: Any) -> None:
        self.cluster.apply(
            {
                "apiVersion": API,
                "kind": "SpotLease",
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {
                    "writeConnectionSecretToRef": {"name": f"{name}-ssh"},
                    "forProvider": {
                        "poolRef": {"name": pool},
                        "owner": name,
                        "authorizedKeys": [KEY],
                        **parameters,
                    },
                },
            }
        )

    def get(self, name: str) -> Object | None:
        return self.cluster.get("spotlease", name, self.namespace)

    def ready(self, name: str) -> str:
        """The id of the lease's instance, once the lease is Ready."""

        def look() -> Object | None:
            found = self.get(name)
            return found if is_ready(found) else None

        found = until(f"lease {name} to be Ready", look)
        instance_id: str = found["status"]["atProvider"]["instanceId"]
        return instance_id

    def says(self, name: str, reason: str, word: str = "") -> None:
        def look() -> bool:
            seen = condition(self.get(name), "Ready")
            return seen.get("reason") == reason and word in seen.get("message", "")

        until(f"lease {name}: {reason} with {word!r}", look, 90)

    def end(self, name: str) -> None:
        self.cluster.delete("spotlease", name, self.namespace, 60)
