"""One workspace and its lifecycle: a developer's commits, annotations and view."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from environment.cluster import CLAIMS, condition
from environment.objects import Object
from environment.ec2 import Ec2
from environment.platform import PARAMETERS, Platform, claim
from environment.waiting import until

EXTEND = "platform.acme.io/extend-until"
RESUME = "platform.acme.io/resume"


@dataclass
class Life:
    platform: Platform
    composition: str
    ec2: Ec2
    name: str = "alice-vision"

    @property
    def namespace(self) -> str:
        return self.platform.namespace

    def manifest(self, lifecycle: dict[str, str], **parameters: Any) -> Object:
        document = claim(
            self.namespace,
            self.name,
            {**PARAMETERS, **parameters, "lifecycle": lifecycle},
        )
        document["spec"]["compositionRef"] = {"name": self.composition}
        return document

    def commit(self, lifecycle: dict[str, str], **parameters: Any) -> Object:
        document = self.manifest(lifecycle, **parameters)
        self.platform.cluster.apply(document)
        return document

    def annotate(self, key: str, value: str) -> None:
        self.platform.cluster.kubectl(
            *("annotate", CLAIMS, self.name, "--namespace", self.namespace),
            *("--overwrite", f"{key}={value}"),
        )

    def pause(self, value: str) -> None:
        """Pauses the composite if `value` is `true`, and resumes it if `false`."""
        reference = self.platform.workspace(self.name)["spec"]["resourceRef"]
        self.platform.cluster.kubectl(
            *("annotate", self.platform.cluster.composites, reference["name"]),
            *("--overwrite", f"crossplane.io/paused={value}"),
        )

    def status(self) -> Object:
        return self.platform.status(self.name)

    def lifecycle(self) -> dict[str, str]:
        found: dict[str, str] = self.status().get("lifecycle", {})
        return found

    def phase(self, phase: str, seconds: float = 60) -> Object:
        """The status once the workspace has the phase."""
        return self.platform.phase(self.name, phase, seconds=seconds)

    def machines(self) -> list[str]:
        """The ids of the instances that EC2 bills."""
        return [instance["InstanceId"] for instance in self.ec2.live(self.namespace)]

    def ended(self, instance_id: str, seconds: float = 60) -> datetime:
        """Waits until EC2 no longer bills an instance. Returns the time."""
        until(
            f"{instance_id} to end",
            lambda: instance_id not in self.machines(),
            seconds,
        )
        return now()

    def scheduled(self) -> tuple[str, str]:
        """The status and the reason of the condition `StopScheduled`."""
        seen = condition(self.platform.workspace(self.name), "StopScheduled")
        return seen.get("status", ""), seen.get("reason", "")

    def events(self) -> list[tuple[str, str]]:
        """The reason and the message of each event of the claim."""
        listed = self.platform.cluster.kubectl(
            *("get", "events", "-n", self.namespace, "-o", "json"),
            f"--field-selector=involvedObject.kind=GpuDevWorkspaceClaim,"
            f"involvedObject.name={self.name}",
        )
        items = json.loads(listed)["items"]
        return [(item["reason"], item["message"]) for item in items]


def says(status: Object, verdict: str, word: str) -> Object | None:
    """The `activity` of a status if it has the verdict, and the word in its message."""
    activity: Object = status.get("activity", {})
    fits = activity.get("verdict") == verdict and word in activity.get("message", "")
    return activity if fits else None


def stays(look: Callable[[], Object], verdict: str, word: str, seconds: float) -> None:
    """Waits until the status has this verdict. Then checks that the workspace stays
    Ready, and keeps the verdict, for `seconds`."""
    until(f"{verdict}: {word}", lambda: says(look(), verdict, word), 90)
    runs(look, seconds)
    assert says(look(), verdict, word), look().get("activity")


def runs(look: Callable[[], Object], seconds: float) -> None:
    """Checks that the workspace stays Ready for `seconds`."""
    begun = now()
    until(
        f"{seconds:.0f} s to pass",
        lambda: (now() - begun).total_seconds() > seconds or look()["phase"] != "Ready",
        seconds=seconds + 30,
    )
    assert look()["phase"] == "Ready"


def now() -> datetime:
    return datetime.now(UTC)


def moment(text: str) -> datetime:
    """Parses a time of Kubernetes."""
    return datetime.fromisoformat(text)


def written(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def later(seconds: float) -> str:
    return written(now() + timedelta(seconds=seconds))
