"""Spot interruptions: the notice, then the termination.

"Spot Instance interruption notices" and "Spot request status" (EC2 user guide): the
warning comes two minutes before the termination. The request's status changes at once.
The instance runs until the termination.
"""

from .events import INTERRUPTION
from .instance import SPOT_TERMINATION, EmulatedInstance


def interrupt(instance: EmulatedInstance, notice_seconds: float) -> None:
    """Sends the warning now, and ends the instance `notice_seconds` later."""
    region = instance.region
    if instance.state in ("shutting-down", "terminated"):
        return
    instance.spot_request.interrupt()
    instance.interruption_at = region.clock.seconds() + notice_seconds
    region.publish(
        INTERRUPTION,
        instance,
        {"instance-id": instance.id, "instance-action": "terminate"},
    )
    if notice_seconds == 0:
        instance.end(SPOT_TERMINATION, "Service")
        return

    def take_back(due: float) -> None:
        instance.end(SPOT_TERMINATION, "Service", due)

    region.timeline.at(region.clock.seconds() + notice_seconds, take_back)
