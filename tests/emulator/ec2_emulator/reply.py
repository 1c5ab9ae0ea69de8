"""An HTTP answer, before it is sent."""

import re
from dataclasses import dataclass
from http import HTTPStatus

_XML_CODE = re.compile(rb"<Code>([^<]+)</Code>")
_JSON_CODE = re.compile(rb'"__type"\s*:\s*"(?:[^"#]*#)?([^"]+)"')


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def code(self) -> str:
        """'OK', or the AWS error code in the content."""
        if self.status < 400:
            return "OK"
        found = _XML_CODE.search(self.content) or _JSON_CODE.search(self.content)
        return found.group(1).decode() if found else str(self.status)


def reason_phrase(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} Unknown"
