"""Spot interruptions: the notice, then the end.

"Spot Instance interruption notices" and "Spot request status" (EC2 user guide): the
warning comes two minutes early, the request's status changes at once, the instance
keeps running until its time is up.
"""

from .events import INTERRUPTION
from .instance import SPOT_TERMINATION, EmulatedInstance


def interrupt(instance: EmulatedInstance, notice_seconds: float) -> None:
    """Warns now and takes the instance back after the notice; 0 is at once."""
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
