"""DescribeInstanceStatus: state, status checks and scheduled events.

"Status checks for Amazon EC2 instances" (EC2 user guide): checks of a new instance are
`initializing`, then `ok`; an instance that does not run has `not-applicable`.

"Scheduled events for Amazon EC2 instances" (same guide): a completed event stays for a week,
with a description that begins with `[Completed]`.
"""

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses._base_response import EC2BaseResponse

from ..errors import AwsError
from .filters import select
from .instance import EmulatedInstance
from .paging import page
from .region import Region
from .wire import Answer

_PASSED = {"initializing": "initializing", "ok": "passed", "impaired": "failed"}


def check_status(instance: EmulatedInstance, kind: str) -> str:
    """The result of the "instance", the "system" or the "ebs" check."""
    if instance.state != "running" or instance.running_since is None:
        return "not-applicable"
    if instance.impaired == kind:
        return "impaired"
    checked = instance.running_since + instance.region.settings.status_check_seconds
    return "ok" if instance.region.clock.reached(checked) else "initializing"


_FILTERS = {
    "availability-zone": lambda one: one.availability_zone,
    "instance-state-code": lambda one: str(one.state_code),
    "instance-state-name": lambda one: one.state,
    "instance-status.status": lambda one: check_status(one, "instance"),
    "instance-status.reachability": lambda one: _PASSED.get(
        check_status(one, "instance")
    ),
    "system-status.status": lambda one: check_status(one, "system"),
    "system-status.reachability": lambda one: _PASSED.get(check_status(one, "system")),
    "attached-ebs-status.status": lambda one: check_status(one, "ebs"),
    "event.code": lambda one: [event["Code"] for event in one.scheduled],
    "event.description": lambda one: [event["Description"] for event in one.scheduled],
}
# What the emulator does not have. Filters on it match nothing.
_EMPTY_FILTERS = (
    "event.instance-event-id",
    "event.not-after",
    "event.not-before",
    "event.not-before-deadline",
)


class Statuses(EC2BaseResponse):
    here: Region

    def describe_instance_status(self) -> ActionResult:
        self.error_on_dryrun()
        parameters = dict(self.params)
        ids = parameters.get("InstanceIds") or []
        if ids and parameters.get("MaxResults") is not None:
            raise AwsError(
                "InvalidParameterCombination",
                "The parameter instancesSet cannot be used with the parameter "
                "maxResults",
            )
        instances = (
            self.here.find_visible(ids)
            if ids
            else [one for one in self.here.instances.values() if one.visible]
        )
        if not parameters.get("IncludeAllInstances"):
            instances = [one for one in instances if one.state == "running"]
        found = select(
            instances,
            parameters.get("Filters") or [],
            {**_FILTERS, **dict.fromkeys(_EMPTY_FILTERS, lambda _: None)},
            lambda one: self.ec2_backend.tags.get(one.id, {}),
        )
        shown, token = page(found, parameters, 5, 1000, 100, lambda one: one.sequence)
        statuses = [_status(one) for one in shown]
        return Answer({"InstanceStatuses": statuses, "NextToken": token})


def _status(instance: EmulatedInstance) -> dict[str, Any]:
    return {
        "AvailabilityZone": instance.availability_zone,
        "Events": instance.scheduled,
        "InstanceId": instance.id,
        "InstanceState": {"Code": instance.state_code, "Name": instance.state},
        "InstanceStatus": _check(check_status(instance, "instance")),
        "SystemStatus": _check(check_status(instance, "system")),
        "AttachedEbsStatus": _check(check_status(instance, "ebs")),
    }


def _check(status: str) -> dict[str, Any]:
    if status == "not-applicable":
        return {"Status": status}
    return {
        "Status": status,
        "Details": [{"Name": "reachability", "Status": _PASSED[status]}],
    }
