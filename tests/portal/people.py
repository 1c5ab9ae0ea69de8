"""People with a browser that has no pages: what they send is what a browser sends."""

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import requests

from processes import PATIENCE, until

PASSWORD = "password"
SESSION = "__Host-session"


@dataclass
class Browser:
    portal: str
    authority: Path
    http: requests.Session = field(default_factory=requests.Session)

    def __post_init__(self) -> None:
        # The environment of a machine may name other authorities, and a proxy.
        self.http.trust_env = False
        self.http.verify = str(self.authority)

    def sign_in(self, email: str, path: str = "/login") -> requests.Response:
        """Goes to the portal and signs in by dex. Returns the last answer."""
        form = self.http.get(f"{self.portal}{path}")
        found = re.search(r'<form method="post" action="([^"]+)"', form.text)
        assert found, form.text
        action = urljoin(form.url, unescape(found[1]))
        return self.http.post(action, data={"login": email, "password": PASSWORD})

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.http.get(f"{self.portal}{path}", **options)

    def writes(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> requests.Response:
        """A request of the portal's own page, as axios sends it."""
        sent = {**self.own(), **headers}
        if body is not None:
            sent = {"Content-Type": "application/json", **sent}
        text = None if body is None else json.dumps(body)
        sent = {name: value for name, value in sent.items() if value != "-"}
        return self.http.request(
            method, f"{self.portal}{path}", data=text, headers=sent
        )

    def own(self) -> dict[str, str]:
        """The headers by which a request that writes is the portal's own."""
        cookies = {cookie.name: cookie.value for cookie in self.http.cookies}
        return {
            "Origin": self.portal,
            "Sec-Fetch-Site": "same-origin",
            "X-XSRF-TOKEN": cookies.get("XSRF-TOKEN") or "",
        }

    def version(self) -> int:
        number: int = self.get("/api/v1/workspaces").json()["version"]
        return number

    def names(self) -> list[str]:
        return [row["name"] for row in self.get("/api/v1/workspaces").json()["items"]]

    @contextmanager
    def stream(self, since: int, **headers: str) -> Iterator["Stream"]:
        """An open page from a version on."""
        answer = self.get(
            f"/api/v1/watch?since={since}",
            stream=True,
            headers=headers,
            timeout=(10, 60),
        )
        assert answer.status_code == 200, answer.text
        stream = Stream(answer)
        try:
            yield stream
        finally:
            stream.close()


class Stream:
    """Server-sent events, read by a thread."""

    def __init__(self, answer: requests.Response) -> None:
        self.answer = answer
        self.messages: list[tuple[str, Any]] = []
        # When each of them was read.
        self.times: list[float] = []
        self.ids: list[int] = []
        self.is_over = False
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self) -> None:
        message: dict[str, str] = {}
        try:
            for line in self.answer.iter_lines(chunk_size=1, decode_unicode=True):
                if line:
                    key, _, value = line.partition(": ")
                    message[key] = value
                    continue
                if "event" in message:
                    if "id" in message:
                        self.ids.append(int(message["id"]))
                    self.times.append(time.monotonic())
                    self.messages.append(
                        (message["event"], json.loads(message["data"]))
                    )
                message = {}
        except (requests.RequestException, AttributeError, OSError, ValueError):
            # The test closed the connection.
            pass
        self.is_over = True

    def shows(self, event: str, seconds: float = 20, **fields: Any) -> Any:
        """The data of the first message with these fields."""

        def found() -> Any:
            for kind, data in self.messages:
                if kind == event and fields.items() <= data.items():
                    return (data,)
            return None

        return until(f"{event} {fields}", found, seconds)[0]

    def close(self) -> None:
        # The thread waits for the next bytes, and holds the connection.
        connection = self.answer.raw.connection
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join(PATIENCE)
        self.answer.close()
