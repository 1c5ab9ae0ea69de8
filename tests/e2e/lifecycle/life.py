"""One workspace and its life: what a developer commits, annotates and sees."""

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
        """Whether Crossplane leaves the composite alone."""
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
        """The status once the workspace is in the phase."""
        return self.platform.phase(self.name, phase, seconds=seconds)

    def machines(self) -> list[str]:
        """The instances that EC2 bills."""
        return [instance["InstanceId"] for instance in self.ec2.live(self.namespace)]

    def ended(self, instance_id: str, seconds: float = 60) -> datetime:
        """When an instance was no longer billed."""
        until(
            f"{instance_id} to end",
            lambda: instance_id not in self.machines(),
            seconds,
        )
        return now()

    def scheduled(self) -> tuple[str, str]:
        """`StopScheduled`: its status and its reason."""
        seen = condition(self.platform.workspace(self.name), "StopScheduled")
        return seen.get("status", ""), seen.get("reason", "")

    def events(self) -> list[tuple[str, str]]:
        """Reason and message of the claim's events."""
        listed = self.platform.cluster.kubectl(
            *("get", "events", "-n", self.namespace, "-o", "json"),
            f"--field-selector=involvedObject.kind=GpuDevWorkspaceClaim,"
            f"involvedObject.name={self.name}",
        )
        items = json.loads(listed)["items"]
        return [(item["reason"], item["message"]) for item in items]


def says(status: Object, verdict: str, word: str) -> Object | None:
    """A status's `activity`, where it has the verdict and holds the word."""
    activity: Object = status.get("activity", {})
    fits = activity.get("verdict") == verdict and word in activity.get("message", "")
    return activity if fits else None


def stays(look: Callable[[], Object], verdict: str, word: str, seconds: float) -> None:
    """It is told so, and it is Ready for so long after that."""
    until(f"{verdict}: {word}", lambda: says(look(), verdict, word), 90)
    runs(look, seconds)
    assert says(look(), verdict, word), look().get("activity")


def runs(look: Callable[[], Object], seconds: float) -> None:
    """It is Ready for so long."""
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
    """A time of Kubernetes."""
    return datetime.fromisoformat(text)


def written(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def later(seconds: float) -> str:
    return written(now() + timedelta(seconds=seconds))
