"""The emulator's control API: faults, interruptions, recorded calls."""

import json
import os
import time
import urllib.request
from typing import Any

# What the console of an instance shows once its setup is done.
SET_UP = "gpu-workspace setup done\n"


class Emulator:
    def __init__(self, url: str, is_alone: bool = True) -> None:
        self.url = url
        self._is_alone = is_alone
        self._own_faults: list[str] = []

    @classmethod
    def from_environment(cls, is_alone: bool = True) -> "Emulator":
        return cls(os.environ["AWS_ENDPOINT_URL"], is_alone)

    def fault(self, operation: str, **fields: Any) -> str:
        """Adds a fault and returns its id. If tests run in parallel, `match` must match
        calls of this test only."""
        if "match" not in fields:
            self._needs_to_be_alone()
        document = {"operation": operation, **fields}
        fault: str = self._ask("POST", "/faults", document)["id"]
        self._own_faults.append(fault)
        return fault

    def faults(self) -> list[dict[str, Any]]:
        """All faults, each with its number of `hits`."""
        faults: list[dict[str, Any]] = self._ask("GET", "/faults")["faults"]
        return faults

    def end_fault(self, fault: str) -> None:
        if fault in self._own_faults:
            self._own_faults.remove(fault)
        self._ask("DELETE", f"/faults/{fault}")

    def clear_faults(self) -> None:
        """Deletes all faults, or only those of this test if tests run in parallel."""
        if self._is_alone:
            self._ask("DELETE", "/faults")
        while self._own_faults:
            fault = self._own_faults.pop()
            if not self._is_alone:
                self.end_fault(fault)

    def limit(self, access_key: str, policy: dict[str, Any]) -> None:
        """Lets an access key do only what an IAM policy allows."""
        self._ask("POST", "/policies", {"accessKey": access_key, "policy": policy})

    def show_instances_after(self, seconds: float) -> None:
        """Makes EC2 list an instance so many seconds after its launch."""
        self._needs_to_be_alone()
        self._ask("POST", "/visibility", {"seconds": seconds})

    def settings(self, **changes: Any) -> None:
        """Changes settings of the emulator, by their JSON names."""
        self._needs_to_be_alone()
        self._ask("POST", "/settings", changes)

    def print_everywhere(self, text: str) -> None:
        """Sets the console output of all instances that have no machines. Tests that run
        in parallel may set only what they all expect."""
        self._ask("POST", "/settings", {"console": text})

    def interrupt(self, instance_id: str, notice_seconds: float = 0) -> None:
        document = {"instanceId": instance_id, "noticeSeconds": notice_seconds}
        self._ask("POST", "/interrupt", document)

    def rebalance(self, instance_id: str) -> None:
        self._ask("POST", "/rebalance", {"instanceId": instance_id})

    def schedule(self, instance_id: str, code: str) -> None:
        """Schedules an event for the instance, in two weeks."""
        self._ask("POST", "/schedule", {"instanceId": instance_id, "code": code})

    def terminate(self, instance_id: str) -> None:
        self._ask("POST", "/terminate", {"instanceId": instance_id})

    def forget_calls(self) -> None:
        self._needs_to_be_alone()
        self._ask("DELETE", "/calls")

    def calls(self) -> dict[str, int]:
        counts: dict[str, int] = self._ask("GET", "/calls")["counts"]
        return counts

    def recorded(self, operation: str) -> list[dict[str, Any]]:
        """The calls of one operation, with their parameters, oldest first."""
        path = f"/calls?operation={operation}"
        calls: list[dict[str, Any]] = self._ask("GET", path)["calls"]
        return calls

    def latest(self, seconds: float, access_key: str = "") -> list[dict[str, Any]]:
        """The calls that EC2 answered in the last `seconds`, of one access key if it is
        given."""
        path = f"/calls?since={time.time() - seconds}"
        if access_key:
            path += f"&accessKey={access_key}"
        calls: list[dict[str, Any]] = self._ask("GET", path)["calls"]
        return calls

    def under_way(self) -> list[dict[str, Any]]:
        """The calls without an answer. `carriedOut` says whether a call took effect."""
        calls: list[dict[str, Any]] = self._ask("GET", "/calls/under-way")["calls"]
        return calls

    def _needs_to_be_alone(self) -> None:
        """Fails if tests run in parallel, because the change affects all of them."""
        assert self._is_alone, "mark this test `alone`: it changes EC2 for all tests"

    def _ask(self, method: str, path: str, document: Any = None) -> Any:
        data = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(
            f"{self.url}/_emulator{path}", data=data, method=method
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)
