"""Composites and claims, as Crossplane writes them after a response of the function."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

CASES = Path(__file__).parents[2] / "function/tests/cases"

Resource = dict[str, Any]


def names() -> list[str]:
    return sorted(folder.name for folder in CASES.iterdir())


def merged(base: Any, change: Any) -> Any:
    """`base` after a JSON merge patch (RFC 7386)."""
    if not isinstance(change, dict):
        return change
    result = dict(base) if isinstance(base, dict) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


@cache
def written(name: str, file: str) -> Any:
    """A file of a case. Every test reads all files, so each file is cached, and parsed
    by the faster libyaml."""
    return yaml.load((CASES / name / file).read_text(), Loader=yaml.CSafeLoader)


def request(name: str) -> Any:
    own = written(name, "request.yaml")
    if "extends" not in own:
        return own
    return merged(request(own["extends"]), own.get("change") or {})


def is_workspace(name: str) -> bool:
    return kind(name) == "GpuDevWorkspace"


def kind(name: str) -> str:
    if name.startswith("flavor-"):
        return "WorkspaceFlavor"
    if name.startswith(("user-", "refused-user-")) and not name.startswith(
        "user-data-"
    ):
        return "DevUser"
    return "GpuDevWorkspace"


class Answer:
    """The function's response in a case."""

    def __init__(self, name: str) -> None:
        self.name = name
        answer = written(name, "response.yaml")
        self.desired = answer.get("desired") or {}
        self.own = answer.get("conditions") or []
        self.results = answer.get("results") or []
        self.fatal = next(
            (r["message"] for r in self.results if r["severity"] == "SEVERITY_FATAL"),
            None,
        )

    @property
    def refusal(self) -> str | None:
        """Why the function refuses the composite; none if it accepts it."""
        reasons = {c["reason"] for c in self.own if c["type"] == "ConfigResolved"}
        refusals = [r["message"] for r in self.results if r["reason"] in reasons]
        return refusals[0] if refusals else None

    def status(self) -> Resource:
        """The composite's status. A fatal result leaves it unchanged."""
        if self.fatal:
            observed = request(self.name).get("observed") or {}
            before = (observed.get("composite") or {}).get("resource") or {}
            return dict(before.get("status") or {})
        return dict(self.desired["composite"]["resource"].get("status") or {})

    def is_ready(self) -> bool:
        """The composite's explicit readiness, or whether all composed resources are
        ready."""
        composite = self.desired.get("composite") or {}
        if "ready" in composite:
            return bool(composite["ready"] == "READY_TRUE")
        resources = (self.desired.get("resources") or {}).values()
        return not self.fatal and all(
            resource.get("ready") == "READY_TRUE" for resource in resources
        )

    def composite(self, age: str) -> Resource:
        """The composite, with conditions of this age."""
        failed = f'cannot compose resources: pipeline step "workspace" returned a fatal result: {self.fatal}'
        synced = (
            condition("Synced", "False", "ReconcileError", age, failed)
            if self.fatal
            else condition("Synced", "True", "ReconcileSuccess", age)
        )
        ready = (
            condition("Ready", "True", "Available", age)
            if self.is_ready()
            else condition("Ready", "False", "Creating", age)
        )
        return self.resource(kind(self.name), "alice-vision-x7k2p", [synced, ready])

    def claim(self, age: str) -> Resource:
        waiting = "Claim is waiting for composite resource to become Ready"
        ready = (
            condition("Ready", "True", "Available", age)
            if self.is_ready()
            else condition("Ready", "False", "Waiting", age, waiting)
        )
        synced = condition("Synced", "True", "ReconcileSuccess", age)
        return self.resource("GpuDevWorkspaceClaim", "alice-vision", [synced, ready])

    def resource(
        self, of_kind: str, name: str, crossplanes: list[Resource]
    ) -> Resource:
        age = crossplanes[0]["lastTransitionTime"]
        own = [
            condition(
                c["type"],
                c["status"].removeprefix("STATUS_CONDITION_").capitalize(),
                c["reason"],
                age,
                c.get("message", ""),
            )
            for c in self.own
        ]
        return {
            "apiVersion": "platform.acme.io/v1alpha1",
            "kind": of_kind,
            "metadata": {"name": name, "generation": 2},
            "status": self.status() | {"conditions": crossplanes + own},
        }


def condition(
    type_: str, status: str, reason: str, age: str, message: str = ""
) -> Resource:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "lastTransitionTime": age,
        "observedGeneration": 2,
    } | ({"message": message} if message else {})
