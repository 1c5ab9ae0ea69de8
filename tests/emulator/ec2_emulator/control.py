"""The control API under /_emulator: actions of tests that AWS does not offer."""

import json
import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from .boot.hypervisor import Base
from .ec2.events import REBALANCE
from .ec2.interruption import interrupt
from .emulator import Emulator, NoMachines
from .faults import InvalidFault
from .iam import InvalidPolicy
from .reply import Reply
from .settings import InvalidSetting

PREFIX = "/_emulator"
# The codes of scheduled events of instances ("InstanceStatusEvent", API reference).
SCHEDULED = (
    "instance-reboot",
    "instance-retirement",
    "instance-stop",
    "system-maintenance",
    "system-reboot",
)

log = logging.getLogger("ec2_emulator")

Query = dict[str, list[str]]
Handler = Callable[[Any, Query], Any]


class Refused(Exception):
    """The emulator refuses a control request. The message names the field."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Control:
    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self._routes: dict[tuple[str, str], Handler] = {
            ("GET", "/health"): lambda *_: {"status": "ok"},
            ("GET", "/settings"): lambda *_: emulator.settings.as_json(),
            ("POST", "/settings"): self._change_settings,
            ("POST", "/visibility"): self._change_visibility,
            ("GET", "/faults"): lambda *_: {
                "faults": [fault.as_json() for fault in emulator.faults.all()]
            },
            ("POST", "/faults"): lambda document, _: emulator.faults.add(
                document
            ).as_json(),
            ("DELETE", "/faults"): lambda *_: emulator.faults.clear(),
            ("POST", "/policies"): lambda document, _: emulator.policies.attach(
                document
            ),
            ("DELETE", "/policies"): lambda *_: emulator.policies.clear(),
            ("GET", "/calls"): self._calls,
            ("GET", "/calls/under-way"): lambda *_: (
                emulator.recorder.under_way_as_json()
            ),
            ("DELETE", "/calls"): lambda *_: emulator.recorder.clear(),
            ("POST", "/interrupt"): self._interrupt,
            ("POST", "/rebalance"): self._rebalance,
            ("POST", "/terminate"): self._terminate,
            ("POST", "/impair"): self._impair,
            ("POST", "/schedule"): self._schedule,
            ("POST", "/console"): self._print,
            ("POST", "/clock"): self._change_time,
            ("POST", "/machines"): self._provide_machines,
            ("POST", "/reset"): lambda *_: emulator.reset(),
        }

    def answer(self, method: str, path: str, query: str, body: bytes) -> Reply:
        route = path.removeprefix(PREFIX).rstrip("/")
        try:
            document = json.loads(body) if body else {}
            result = self._handle(method, route, document, parse_qs(query))
            return _json(200, result if result is not None else {})
        except ValueError as error:
            kind = InvalidSetting | InvalidFault | InvalidPolicy
            prefix = "" if isinstance(error, kind) else "not JSON: "
            return _json(400, {"error": f"{prefix}{error}"})
        except Refused as refused:
            return _json(refused.status, {"error": str(refused)})
        except Exception as error:
            log.exception("%s %s failed inside the emulator", method, path)
            return _json(500, {"error": f"{type(error).__name__}: {error}"})

    def _handle(self, method: str, route: str, document: Any, query: Query) -> Any:
        if method == "DELETE" and route.startswith("/faults/"):
            fault = route.removeprefix("/faults/")
            if not self._emulator.faults.remove(fault):
                raise Refused(404, f"{fault}: no such fault")
            return None
        handler = self._routes.get((method, route))
        if handler is None:
            known = ", ".join(f"{verb} {PREFIX}{name}" for verb, name in self._routes)
            raise Refused(404, f"{method} {PREFIX}{route}: no such control; {known}")
        return handler(document, query)

    def _change_settings(self, document: Any, _: Query) -> Any:
        with self._emulator.held():
            self._emulator.settings = self._emulator.settings.changed_by(document)
            return self._emulator.settings.as_json()

    def _change_visibility(self, document: Any, _: Query) -> Any:
        seconds = _number(document, "seconds")
        return self._change_settings({"visibilitySeconds": seconds}, {})

    def _calls(self, _: Any, query: Query) -> Any:
        since = query.get("since", ["0"])[0]
        operation = query.get("operation", [None])[0]
        key = query.get("accessKey", [None])[0]
        try:
            return self._emulator.recorder.as_json(float(since), operation, key)
        except ValueError as error:
            raise Refused(400, "since: expected seconds since the epoch") from error

    def _interrupt(self, document: Any, _: Query) -> None:
        notice = _number(document, "noticeSeconds", 120.0)
        with self._emulator.held():
            instance = self._instance(document)
            if instance.spot_request is None:
                raise Refused(400, f"instanceId: {instance.id} is not a spot instance")
            if instance.spot_request.behavior != "terminate":
                raise Refused(
                    501, "only the interruption behavior 'terminate' is emulated"
                )
            interrupt(instance, notice)

    def _rebalance(self, document: Any, _: Query) -> None:
        with self._emulator.held():
            instance = self._instance(document)
            instance.rebalance_at = instance.region.clock.seconds()
            instance.region.publish(REBALANCE, instance, {"instance-id": instance.id})

    def _terminate(self, document: Any, _: Query) -> None:
        with self._emulator.held():
            self._instance(document).terminate()

    def _impair(self, document: Any, _: Query) -> None:
        check = document.get("check", "instance")
        if check not in ("instance", "system", "ebs", None):
            raise Refused(400, 'check: expected "instance", "system", "ebs" or null')
        with self._emulator.held():
            self._instance(document).impaired = check

    def _schedule(self, document: Any, _: Query) -> None:
        """Gives the instance a scheduled event. Without a code it has none any more."""
        code = document.get("code") if isinstance(document, dict) else None
        if code not in (*SCHEDULED, None):
            raise Refused(400, f"code: expected null or one of {', '.join(SCHEDULED)}")
        after = _number(document, "notBeforeSeconds", 14 * 86400.0)
        said = document.get("description", "The instance runs on degraded hardware")
        with self._emulator.held():
            instance = self._instance(document)
            begins = instance.region.clock.now() + timedelta(seconds=after)
            event = {"Code": code, "Description": said, "NotBefore": begins}
            instance.scheduled = [] if code is None else [event]

    def _print(self, document: Any, _: Query) -> None:
        text = document.get("text") if isinstance(document, dict) else None
        if not isinstance(text, str):
            raise Refused(400, "text: expected the console output of the instance")
        with self._emulator.held():
            self._instance(document).printed = text.encode()

    def _provide_machines(self, document: Any, _: Query) -> None:
        paths = document if isinstance(document, dict) else {}
        wanted = ("root", "image", "mountpoint", "packages")
        for name in wanted:
            if not isinstance(paths.get(name), str) or not Path(paths[name]).is_dir():
                raise Refused(400, f"{name}: expected the path of a folder")
        root, image, mountpoint, packages = (Path(paths[name]) for name in wanted)
        try:
            self._emulator.provide_machines(Base((image, root), mountpoint, packages))
        except NoMachines as error:
            raise Refused(400, str(error)) from error

    def _change_time(self, document: Any, _: Query) -> Any:
        clock = self._emulator.clock
        stopped = document.get("stopped") if isinstance(document, dict) else None
        if stopped not in (None, True, False):
            raise Refused(400, "stopped: expected true or false")
        if stopped is not None:
            clock.stop() if stopped else clock.run()
        clock.advance(_number(document, "advanceSeconds", 0.0))
        with self._emulator.held():
            return {"seconds": clock.seconds()}

    def _instance(self, document: Any) -> Any:
        instance_id = document.get("instanceId") if isinstance(document, dict) else None
        if not isinstance(instance_id, str):
            raise Refused(400, "instanceId: expected the id of an instance")
        instance = self._emulator.find_instance(instance_id)
        if instance is None:
            raise Refused(404, f"instanceId: there is no instance {instance_id}")
        return instance


def _number(document: Any, name: str, default: float | None = None) -> float:
    value = document.get(name, default) if isinstance(document, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise Refused(400, f"{name}: expected a number of seconds, 0 or more")
    return float(value)


def _json(status: int, document: Any) -> Reply:
    content = json.dumps(document, indent=2).encode() + b"\n"
    return Reply(status, {"Content-Type": "application/json"}, content)
