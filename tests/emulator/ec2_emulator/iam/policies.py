"""The policies of access keys. A key without a policy may do everything.

"Policy evaluation logic" (IAM user guide): a call is refused unless a statement allows
its action on each of its resources. Statements that deny are not emulated.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from threading import Lock
from typing import Any

from ..calls import Call
from ..errors import AwsError
from .needs import Need, needs

# The condition keys whose values the emulator knows.
_TAG_KEYS = ("aws:ResourceTag/", "aws:RequestTag/")
_KEYS = ("aws:TagKeys", "ec2:CreateAction")
_OPERATORS = {
    "StringEquals": str.__eq__,
    "StringLike": fnmatchcase,
}
_FOR_ALL = "ForAllValues:"


class InvalidPolicy(ValueError):
    """The message names the part of the policy that is not emulated."""


@dataclass(frozen=True)
class Statement:
    actions: list[str]
    resources: list[str]
    conditions: dict[str, dict[str, list[str]]]

    def allows(self, need: Need) -> bool:
        return (
            _matches(need.action, self.actions)
            and _matches(need.resource, self.resources)
            and all(
                self._holds(operator, key, wanted, need)
                for operator, keys in self.conditions.items()
                for key, wanted in keys.items()
            )
        )

    def _holds(self, operator: str, key: str, wanted: list[str], need: Need) -> bool:
        compare = _OPERATORS[operator.removeprefix(_FOR_ALL)]
        values = need.values(key)
        is_one = [any(compare(value, one) for one in wanted) for value in values]
        # A key without a value fails a condition, except for one about all values.
        return all(is_one) if operator.startswith(_FOR_ALL) else any(is_one)


class Policies:
    def __init__(self) -> None:
        self._lock = Lock()
        self._by_key: dict[str, list[Statement]] = {}

    def attach(self, document: Any) -> None:
        """Limits an access key to the statements of a policy."""
        if not isinstance(document, dict) or not document.get("accessKey"):
            raise InvalidPolicy("accessKey: expected the id of an access key")
        statements = [_read(one) for one in document["policy"]["Statement"]]
        with self._lock:
            self._by_key[document["accessKey"]] = statements

    def clear(self) -> None:
        with self._lock:
            self._by_key.clear()

    def check(self, call: Call, region: Any) -> None:
        """Raises EC2's error if the caller has a policy that does not allow the call."""
        with self._lock:
            statements = self._by_key.get(call.access_key)
        if statements is None:
            return
        for need in needs(call, region):
            if not any(statement.allows(need) for statement in statements):
                raise AwsError(
                    "UnauthorizedOperation",
                    "You are not authorized to perform this operation. User: "
                    f"{call.access_key} is not authorized to perform: {need.action} on "
                    f"resource: {need.resource} because no identity-based policy allows "
                    f"the {need.action} action",
                    403,
                )


def _matches(value: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(value, pattern) for pattern in patterns)


def _read(statement: dict[str, Any]) -> Statement:
    unknown = set(statement) - {"Sid", "Effect", "Action", "Resource", "Condition"}
    if unknown or statement["Effect"] != "Allow":
        raise InvalidPolicy(f"{statement.get('Sid')}: only Allow, without {unknown}")
    conditions = {
        operator: {key: _listed(value) for key, value in keys.items()}
        for operator, keys in statement.get("Condition", {}).items()
    }
    for operator, keys in conditions.items():
        if operator.removeprefix(_FOR_ALL) not in _OPERATORS:
            raise InvalidPolicy(f"{statement.get('Sid')}: {operator} is not emulated")
        for key in keys:
            if key not in _KEYS and not key.startswith(_TAG_KEYS):
                raise InvalidPolicy(f"{statement.get('Sid')}: {key} is not emulated")
    return Statement(
        _listed(statement["Action"]), _listed(statement["Resource"]), conditions
    )


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
