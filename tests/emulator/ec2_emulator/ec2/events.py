"""EC2's events on the account's default EventBridge bus.

Shapes from "Monitor Amazon EC2 events" in the EC2 user guide.
"""

import json
from datetime import datetime
from typing import Any

INTERRUPTION = "EC2 Spot Instance Interruption Warning"
REBALANCE = "EC2 Instance Rebalance Recommendation"


def publish(
    events_backend: Any, kind: str, instance: Any, detail: dict[str, Any], at: datetime
) -> None:
    """Sends one event to the default bus, for its rules to match."""
    if not events_backend.describe_event_bus("default").rules:
        return
    region, account = events_backend.region_name, events_backend.account_id
    partition = events_backend.partition
    resource = f"arn:{partition}:ec2:{region}:{account}:instance/{instance.id}"
    events_backend.put_events(
        [
            {
                "Source": "aws.ec2",
                "DetailType": kind,
                "Detail": json.dumps(detail),
                "Resources": [resource],
                "Time": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
        ]
    )
