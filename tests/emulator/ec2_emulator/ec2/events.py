"""Sends EC2's events from the account's default EventBridge bus to SQS queues.

Shapes from "Monitor Amazon EC2 events" (EC2 user guide) and "Event structure"
(EventBridge user guide).
"""

import json
import logging
import uuid
from datetime import datetime
from typing import Any

from moto.sqs.models import sqs_backends
from moto.utilities.arns import parse_arn

INTERRUPTION = "EC2 Spot Instance Interruption Warning"
REBALANCE = "EC2 Instance Rebalance Recommendation"

log = logging.getLogger("ec2_emulator")


def publish(
    events_backend: Any, kind: str, instance: Any, detail: dict[str, Any], at: datetime
) -> None:
    """Sends one event to every SQS target of a matching rule.

    moto only matches the rules. Its own delivery is not used, because it ignores the
    account.
    """
    rules = events_backend.describe_event_bus("default").rules
    if not rules:
        return
    region, account = events_backend.region_name, events_backend.account_id
    arn = f"arn:{events_backend.partition}:ec2:{region}:{account}:instance/"
    event = {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": kind,
        "source": "aws.ec2",
        "account": account,
        "time": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": region,
        "resources": [arn + instance.id],
        "detail": detail,
    }
    for rule in rules.values():
        if rule.state == "ENABLED" and rule.event_pattern.matches_event(event):
            for target in rule.targets:
                _deliver(target, event)


def _deliver(target: dict[str, Any], event: dict[str, Any]) -> None:
    arn = parse_arn(target["Arn"])
    if arn.service != "sqs" or "InputTransformer" in target:
        log.warning("no delivery to %s: only plain SQS targets are", target["Arn"])
        return
    group = target.get("SqsParameters", {}).get("MessageGroupId")
    sqs_backends[arn.account][arn.region].send_message(
        queue_name=arn.resource_id,
        message_body=json.dumps(event, separators=(",", ":")),
        group_id=group,
    )
