"""Client tokens: repeated requests with one token cause one launch.

"Ensuring idempotency in Amazon EC2 API requests", EC2 developer guide: a retry with
the same parameters succeeds without further action, and reports the current state. A
retry with other parameters fails with IdempotentParameterMismatch. RunInstances tokens
are valid for at least 24 hours after the termination of the instances.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..errors import AwsError

MISMATCH = (
    "Arguments on this idempotent request are inconsistent with arguments used in "
    "previous request(s)."
)
# boto/boto3#4406 shows it for RunInstances. For CreateFleet nobody has recorded it.
ENDED = (
    "The request uses the same client token as a previous request for which the instance "
    "has been terminated."
)
MAX_LENGTH = 64


@dataclass
class Use:
    """The first use of a token. `result` is None until a request has succeeded.

    A launch that failed for capacity also binds the token to its parameters. If a retry
    has another type, EC2 answers with IdempotentParameterMismatch
    (ubicloud/ubicloud#5898, runs-on/runs-on#251).
    """

    parameters: dict[str, Any]
    result: Any = None
    ended_at: Callable[[], float | None] = field(default=lambda: None)


class Tokens:
    """The tokens of one account in one region.

    `scope` is the operation, plus the Availability Zone if the request names a zone or
    a subnet. RunInstances is then idempotent by zone, and otherwise by region.
    """

    def __init__(self) -> None:
        self._uses: dict[tuple[str, str], Use] = {}

    def find(
        self,
        scope: str,
        token: str | None,
        parameters: dict[str, Any],
        refuses_ended: bool = False,
    ) -> Any:
        """The earlier result for this token, or None. Raises EC2's error if the
        parameters differ, and with `refuses_ended` if the instances have ended."""
        if not token:
            return None
        if len(token) > MAX_LENGTH or not token.isascii():
            raise AwsError(
                "InvalidParameterValue",
                f"Value ({token}) for parameter clientToken is invalid. "
                f"It must be at most {MAX_LENGTH} ASCII characters.",
            )
        use = self._uses.get((scope, token))
        if use is None:
            return None
        if use.parameters != compared(parameters):
            raise AwsError("IdempotentParameterMismatch", MISMATCH)
        if refuses_ended and use.ended_at() is not None:
            raise AwsError("IdempotentInstanceTerminated", ENDED)
        return use.result

    def bind(
        self,
        scope: str,
        token: str | None,
        parameters: dict[str, Any],
        result: Any = None,
        ended_at: Callable[[], float | None] = lambda: None,
    ) -> None:
        """Remembers the token. `ended_at` returns when its resources ended."""
        if token:
            use = Use(compared(parameters), result, ended_at)
            self._uses[(scope, token)] = use

    def expire(self, ended_before: float) -> None:
        """Forgets tokens whose resources ended before that time."""
        for key, use in list(self._uses.items()):
            ended = use.ended_at()
            if ended is not None and ended < ended_before:
                del self._uses[key]


def compared(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters that must be equal: all but the token and DryRun."""
    return {k: v for k, v in parameters.items() if k not in ("ClientToken", "DryRun")}
