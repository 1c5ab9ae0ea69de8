"""Filters of Describe calls: AND between filters, OR between values, wildcards.

"Listing and filtering your resources" (EC2 user guide): values are case-sensitive,
`*` matches any characters, `?` one, and `\\` takes the next one literally.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ..errors import AwsError

T = TypeVar("T")
# The values that a filter compares: none, one, or several of which one must match.
Values = str | None | Iterable[str]
Getters = Mapping[str, Callable[[T], Values]]


def select(
    items: Iterable[T],
    filters: list[dict[str, Any]],
    getters: Getters[T],
    tags_of: Callable[[T], dict[str, str]],
    not_emulated: frozenset[str] = frozenset(),
) -> list[T]:
    """The items that pass every filter, or EC2's error for an unknown name."""
    checks = [_check(one, getters, tags_of, not_emulated) for one in filters]
    return [item for item in items if all(check(item) for check in checks)]


def _check(
    one: dict[str, Any],
    getters: Getters[T],
    tags_of: Callable[[T], dict[str, str]],
    not_emulated: frozenset[str],
) -> Callable[[T], bool]:
    name = one.get("Name")
    if not name:
        raise AwsError("InvalidParameterValue", "The filter 'null' is invalid")
    wanted = matcher([str(value) for value in one.get("Values", [])])
    if name.startswith("tag:"):
        key = name.removeprefix("tag:")
        return lambda item: wanted(tags_of(item).get(key))
    if name == "tag-key":
        return lambda item: any(map(wanted, tags_of(item)))
    if name == "tag-value":
        return lambda item: any(map(wanted, tags_of(item).values()))
    if name in not_emulated:
        raise AwsError(
            "NotImplementedByEmulator", f"The filter '{name}' is not emulated", 501
        )
    getter = getters.get(name)
    if getter is None:
        raise AwsError("InvalidParameterValue", f"The filter '{name}' is invalid")
    return lambda item: _any(wanted, getter(item))


def _any(wanted: Callable[[str | None], bool], values: Values) -> bool:
    if values is None or isinstance(values, str):
        return wanted(values)
    return any(map(wanted, values))


def matcher(patterns: list[str]) -> Callable[[str | None], bool]:
    """Whether a value equals one of the patterns."""
    exact = {one for one in patterns if not re.search(r"[*?\\]", one)}
    wild = [re.compile(_regex(one), re.DOTALL) for one in patterns if one not in exact]

    def matches(value: str | None) -> bool:
        if value is None:
            return False
        return value in exact or any(one.fullmatch(value) for one in wild)

    return matches


def _regex(pattern: str) -> str:
    parts = re.split(r"(\\.|\*|\?)", pattern, flags=re.DOTALL)
    return "".join(
        {"*": ".*", "?": "."}.get(part) or re.escape(_unescaped(part)) for part in parts
    )


def _unescaped(part: str) -> str:
    return part[1:] if len(part) == 2 and part[0] == "\\" else part


def flag(value: Any) -> str:
    """A boolean as filters spell it."""
    return "true" if value else "false"
