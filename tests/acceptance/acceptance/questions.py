"""The questions. Each one needs only objects with the program's tag."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from .account import Account, launched, outcome, refusal

Answer = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """`kind` is the type to launch. The tags of ended instances are watched so long."""

    kind: str
    tags_minutes: float


@dataclass(frozen=True)
class Question:
    key: str
    text: str
    ask: Callable[[Account, Options], Answer]


def _repeated(account: Account, options: Options) -> Answer:
    token, places = f"{account.run}-repeated", _anywhere(account, options)
    first = account.fleet(token, places)
    second = _again(account, token, places)
    return {"first": outcome(first), "second": second}


def _ended(account: Account, options: Options) -> Answer:
    token, places = f"{account.run}-ended", _anywhere(account, options)
    first = account.fleet(token, places)
    account.end(launched(first))
    return {"first": outcome(first), "second": _again(account, token, places)}


def _together(account: Account, options: Options) -> Answer:
    token, places = f"{account.run}-together", _anywhere(account, options)
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(_again, account, token, places) for _ in range(2)]
        answers = [call.result() for call in calls]
    return {"answers": answers, "instances": _instances_of(answers)}


def _without_spot(account: Account, options: Options) -> Answer:
    """A type that a zone offers, and that has no spot price there."""
    found = _unsold(account)
    if found is None:
        return {"none": "every offered type has a spot price in each zone"}
    kind, zone = found
    token = f"{account.run}-unsold"
    places = [(kind, zone), *_anywhere(account, options)]
    return {"type": kind, "zone": zone, "answer": _again(account, token, places)}


def _tags_of_the_dead(account: Account, options: Options) -> Answer:
    token, places = f"{account.run}-tags", _anywhere(account, options)
    ids = launched(account.fleet(token, places))
    account.end(ids)
    ended = time.monotonic()
    last = 0.0
    while time.monotonic() - ended < options.tags_minutes * 60:
        listed = {one["InstanceId"] for one in account.instances()}
        if not set(ids) <= listed:
            break
        last = time.monotonic() - ended
        time.sleep(30)
    minutes = round(last / 60, 1)
    return {"listedForMinutes": minutes, "watchedForMinutes": options.tags_minutes}


QUESTIONS = (
    Question(
        "token-repeated",
        "CreateFleet (instant) twice with one token: what does the second answer hold?",
        _repeated,
    ),
    Question(
        "token-ended",
        "The same after the instance was terminated: the old answer, or an error?",
        _ended,
    ),
    Question(
        "token-together",
        "Two calls of CreateFleet with one token at the same time: how many instances?",
        _together,
    ),
    Question(
        "zone-without-spot",
        "A type without a spot price in a zone: which error, and do other zones grant it?",
        _without_spot,
    ),
    Question(
        "tags-of-ended-instances",
        "How long does a filter by tag show a terminated instance?",
        _tags_of_the_dead,
    ),
)

# The steps for a person, by key.
BY_HAND = {
    "limit-or-token": "Lower the vCPU quota of spot instances to zero between two calls of "
    "CreateFleet with one token: is the second call refused, or is it answered?",
    "key-without-permission": "Make a customer key without a grant for EC2 Spot the account's "
    "default for volumes, and launch: note StateReason's code and message, and the seconds "
    "until the instance is terminated. Make a volume under the key: how long is it "
    "`creating`, and what does its token answer afterwards?",
    "interruption": "Let the fault injection service interrupt a spot instance: note its "
    "StateTransitionReason.",
    "group-in-a-rule": "With docs/aws/provider.json only, let a group with our tag admit the "
    "members of a group without it on port 22: is AuthorizeSecurityGroupIngress allowed, and "
    "which UserId does DescribeSecurityGroupRules show for the second group?",
    "five-hundred-ends": "Call TerminateInstances three times within a second, each time with "
    "five hundred ids: which call is throttled, and for how long?",
}


def _anywhere(account: Account, options: Options) -> list[tuple[str, str]]:
    return [(options.kind, zone) for zone in account.zones()]


def _again(account: Account, token: str, places: list[tuple[str, str]]) -> Answer:
    try:
        return outcome(account.fleet(token, places))
    except ClientError as error:
        return refusal(error)


def _instances_of(answers: list[Answer]) -> int:
    return len({id_ for one in answers for id_ in one.get("instances", [])})


def _unsold(account: Account) -> tuple[str, str] | None:
    kinds = ["g4dn.xlarge", "g5.xlarge", "g6.xlarge", "p3.2xlarge"]
    offered = account.ec2.describe_instance_type_offerings(
        LocationType="availability-zone",
        Filters=[{"Name": "instance-type", "Values": kinds}],
    )
    history = account.ec2.describe_spot_price_history(
        InstanceTypes=kinds,
        ProductDescriptions=["Linux/UNIX"],
        StartTime=datetime.now(UTC) - timedelta(hours=1),
    )
    priced = {
        (one["InstanceType"], one["AvailabilityZone"])
        for one in history["SpotPriceHistory"]
    }
    usable = set(account.zones())
    pairs = sorted(
        (one["InstanceType"], one["Location"])
        for one in offered["InstanceTypeOfferings"]
    )
    unsold = (pair for pair in pairs if pair not in priced and pair[1] in usable)
    return next(unsold, None)
