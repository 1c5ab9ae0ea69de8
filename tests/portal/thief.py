"""Somebody who has the portal's own token."""

from dataclasses import dataclass
from typing import Any

import requests


@dataclass(frozen=True)
class Thief:
    server: str
    token: str

    def asks(
        self,
        method: str,
        path: str,
        headers: dict[str, str] | None = None,
        body: Any = None,
    ) -> requests.Response:
        with requests.Session() as http:
            http.trust_env = False
            http.verify = False
            sent = {"Authorization": f"Bearer {self.token}", **(headers or {})}
            return http.request(method, self.server + path, headers=sent, json=body)
