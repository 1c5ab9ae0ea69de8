"""Pages by MaxResults and NextToken.

"Pagination" (EC2 developer guide): a token is opaque. It is valid only for a request
with the same parameters.
"""

import base64
import json
import zlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..errors import AwsError

T = TypeVar("T")


def page(
    items: Sequence[T],
    parameters: dict[str, Any],
    smallest: int,
    largest: int,
    default: int | None,
    position: Callable[[T], int],
) -> tuple[list[T], str | None]:
    """One page of the items, and the token for the next page.

    `position` is a number of each item. It increases along the items and never changes,
    so that a page begins where the last one ended, even if items came or went.
    A size above `largest` means `largest`, as in EC2.
    """
    size = parameters.get("MaxResults")
    if size is not None and size < smallest:
        raise AwsError(
            "InvalidParameterValue",
            f"Value ( {size} ) for parameter maxResults is invalid. "
            f"Expecting a value greater than or equal to {smallest}.",
        )
    after = _position_in(parameters.get("NextToken"), parameters)
    rest = [item for item in items if position(item) > after]
    limit = min(size, largest) if size is not None else default
    if limit is None or len(rest) <= limit:
        return rest, None
    return rest[:limit], _token(position(rest[limit - 1]), parameters)


def _question(parameters: dict[str, Any]) -> int:
    """A hash of the request's parameters without those for pages."""
    asked = {
        k: v for k, v in parameters.items() if k not in ("NextToken", "MaxResults")
    }
    return zlib.crc32(json.dumps(asked, sort_keys=True, default=str).encode())


def _token(position: int, parameters: dict[str, Any]) -> str:
    content = json.dumps([position, _question(parameters)])
    return base64.urlsafe_b64encode(content.encode()).decode()


def _position_in(token: str | None, parameters: dict[str, Any]) -> int:
    if not token:
        return -1
    try:
        position, question = json.loads(base64.urlsafe_b64decode(token.encode()))
        if question == _question(parameters):
            return int(position)
    except (ValueError, TypeError):
        pass
    raise AwsError("InvalidNextToken", "The specified NextToken is not valid.")
