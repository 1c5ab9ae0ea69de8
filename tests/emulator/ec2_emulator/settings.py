"""The settings that can change while the emulator runs."""

from dataclasses import dataclass, fields, replace
from typing import Any


class InvalidSetting(ValueError):
    """The message names the setting and its valid values."""


@dataclass(frozen=True)
class Settings:
    """Durations are in seconds. JSON names are in camelCase (`pendingSeconds`)."""

    pending_seconds: float = 2.0
    shutting_down_seconds: float = 1.0
    stopping_seconds: float = 1.0
    volume_creating_seconds: float = 0.5
    attaching_seconds: float = 0.5
    detaching_seconds: float = 0.5
    # The time of a snapshot from pending to completed. EC2 needs minutes.
    snapshot_seconds: float = 2.0
    # "ModifyVolume": up to four modifications of a volume within 24 hours.
    modifications_in_window: int = 4
    modification_window_seconds: float = 24 * 3600.0
    # EC2 keeps terminated instances visible for "approximately one hour".
    terminated_retention_seconds: float = 3600.0
    # How long after `running` the status checks report "initializing".
    status_check_seconds: float = 5.0
    # How long after its launch an instance first appears in a Describe answer.
    visibility_seconds: float = 0.0
    # EC2 bounds a client token by "at least 24 hours after the termination".
    token_retention_seconds: float = 24 * 3600.0
    throttle: bool = False
    # Whether EC2 refuses the token of a launch whose instances have ended.
    refuse_ended_tokens: bool = False
    # The zone that is down: it has no capacity, and EC2 describes instances only for calls
    # that name instances of other zones ("DescribeInstances" in the API reference).
    zone_down: str = ""
    # The console output of every instance that has no machine, once it has run.
    console: str = ""

    def changed_by(self, document: Any) -> "Settings":
        """These settings, changed by the document. Raises InvalidSetting."""
        if not isinstance(document, dict):
            raise InvalidSetting("settings: expected a JSON object")
        known = {_json_name(field.name): field.name for field in fields(self)}
        changes: dict[str, Any] = {}
        for name, value in document.items():
            if name not in known:
                raise InvalidSetting(
                    f"{name}: no such setting; there are {', '.join(sorted(known))}"
                )
            changes[known[name]] = self._checked(known[name], name, value)
        return replace(self, **changes)

    def as_json(self) -> dict[str, Any]:
        return {_json_name(f.name): getattr(self, f.name) for f in fields(self)}

    def _checked(self, name: str, json_name: str, value: Any) -> Any:
        if isinstance(getattr(self, name), str):
            if isinstance(value, str):
                return value
            raise InvalidSetting(f"{json_name}: expected a text")
        if isinstance(getattr(self, name), bool):
            if isinstance(value, bool):
                return value
            raise InvalidSetting(f"{json_name}: expected true or false")
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise InvalidSetting(
                f"{json_name}: expected a number of seconds, 0 or more"
            )
        return float(value)


def _json_name(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)
