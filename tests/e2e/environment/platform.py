"""Workspaces of one namespace, with the actions of a developer."""

from typing import Any

from .cluster import CLAIMS, Cluster, condition, is_ready
from .objects import Object
from .waiting import until

PARAMETERS = {
    "instanceType": "g4dn.xlarge",
    "region": "us-east-1",
    "owner": "alice",
    "opencvVersion": "4.8.0",
    "ssh": {"allowedCidrs": ["203.0.113.0/24"]},
}


class Platform:
    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace

    def claim(self, name: str, composition: str = "", **parameters: Any) -> None:
        """Applies the smallest claim, with changed parameters."""
        document = claim(self.namespace, name, {**PARAMETERS, **parameters})
        if composition:
            document["spec"]["compositionRef"] = {"name": composition}
        self.cluster.apply(document)

    def workspace(self, name: str) -> Object:
        found = self.cluster.get(CLAIMS, name, self.namespace)
        assert found is not None, f"no claim {name}"
        return found

    def status(self, name: str) -> Object:
        status: Object = self.workspace(name).get("status", {})
        return status

    def ready(self, name: str, seconds: float = 60) -> Object:
        """The status of the claim once it is Ready."""

        def look() -> Object | None:
            found = self.workspace(name)
            return found["status"] if is_ready(found) else None

        return until(
            f"claim {name} to be Ready",
            look,
            seconds,
            instead=lambda: self.workspace(name).get("status"),
        )

    def condition(
        self, name: str, type_: str, status: str, word: str = "", seconds: float = 60
    ) -> Object:
        """The claim's condition once it has the status, and the word in its text."""

        def look() -> Object | None:
            seen = condition(self.workspace(name), type_)
            text = f"{seen.get('reason')} {seen.get('message')}"
            return seen if seen.get("status") == status and word in text else None

        return until(
            f"claim {name}: {type_}={status} with {word!r}",
            look,
            seconds,
            instead=lambda: self.workspace(name).get("status"),
        )

    def phase(
        self, name: str, phase: str, word: str = "", seconds: float = 60
    ) -> Object:
        """The status once it has the phase, and the word in its message."""

        def look() -> Object | None:
            status = self.status(name)
            fits = status.get("phase") == phase and word in status.get("message", "")
            return status if fits else None

        return until(
            f"claim {name} to be {phase} with {word!r}",
            look,
            seconds,
            instead=lambda: self.workspace(name).get("status"),
        )

    def pool(self) -> Object:
        """The pool of the namespace, once there is exactly one."""

        def look() -> Object | None:
            pools = self.cluster.all("spotpools", self.namespace)
            return pools[0] if len(pools) == 1 else None

        return until("the pool", look)

    def delete(self, name: str, seconds: int = 60) -> None:
        self.cluster.delete_claim(name, self.namespace, seconds)


def claim(namespace: str, name: str, parameters: dict[str, Any]) -> Object:
    return {
        "apiVersion": "platform.acme.io/v1alpha1",
        "kind": "GpuDevWorkspaceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"parameters": parameters},
    }
