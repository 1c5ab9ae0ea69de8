"""The one Secret of the workspace, through the Kubernetes API."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TIMEOUT = 10.0


class Unreachable(Exception):
    """The API server gave no answer, or one that another try may change."""


class Refused(Exception):
    """The API server's answer, which a repetition will hardly change."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status} {reason}")
        self.status = status


class Secrets:
    """The Secrets of a namespace, as a service account may see them."""

    def __init__(
        self,
        connect: Callable[[], http.client.HTTPConnection],
        namespace: str,
        token: str,
    ) -> None:
        self.namespace = namespace
        self._connect = connect
        self._token = token

    def get(self, name: str) -> dict[str, Any]:
        return self._call("GET", name)

    def patch(self, name: str, change: dict[str, Any]) -> dict[str, Any]:
        """A JSON merge patch (RFC 7386)."""
        return self._call("PATCH", name, change)

    def _call(
        self, method: str, name: str, body: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/json",
        }
        if body is not None:
            headers["Content-Type"] = "application/merge-patch+json"
        path = f"/api/v1/namespaces/{self.namespace}/secrets/{name}"
        connection = self._connect()
        try:
            connection.request(
                method, path, json.dumps(body) if body else None, headers
            )
            answer = connection.getresponse()
            content = answer.read()
        except ssl.SSLCertVerificationError as error:
            raise Refused(0, f"its certificate: {error.verify_message}") from error
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(str(error) or type(error).__name__) from error
        finally:
            connection.close()
        if answer.status == 200:
            found = json.loads(content)
            assert isinstance(found, dict)
            return found
        reason = _message(content) or answer.reason
        # 429: the API server asks for patience.
        if answer.status >= 500 or answer.status == 429:
            raise Unreachable(f"{answer.status} {reason}")
        raise Refused(answer.status, reason)


def in_cluster(host: str, port: int, account: Path = ACCOUNT) -> Secrets:
    """As the service account whose token, CA and namespace are mounted."""
    trusted = ssl.create_default_context(cafile=str(account / "ca.crt"))
    return Secrets(
        lambda: http.client.HTTPSConnection(
            host, port, timeout=TIMEOUT, context=trusted
        ),
        (account / "namespace").read_text().strip(),
        (account / "token").read_text().strip(),
    )


def _message(content: bytes) -> str:
    """The message of a Status object."""
    try:
        status = json.loads(content)
    except ValueError:
        return ""
    return str(status.get("message", "")) if isinstance(status, dict) else ""
