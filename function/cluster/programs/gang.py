"""The nodes of a workspace: which there are, and whether they answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import answering

PERIOD = 1.0
# What is still missing is said again after so many seconds.
REMINDER = 15.0


class Missing(Exception):
    """Nodes that do not answer, and why."""


@dataclass(frozen=True)
class Node:
    index: int
    # Its full name.
    host: str

    @property
    def name(self) -> str:
        return self.host.split(".")[0]


def nodes(environment: Mapping[str, str]) -> list[Node]:
    """All nodes, by index."""
    hosts = environment.get("WORKSPACE_HOSTS", "").split()
    if not hosts:
        raise Missing(
            "WORKSPACE_HOSTS is not set: run this in a workspace, in a session by ssh"
        )
    return [Node(index, host) for index, host in enumerate(hosts)]


def wait(
    wanted: Sequence[Node],
    seconds: float,
    say: Callable[[str], None],
    probe: Callable[[str], str | None] = answering.banner,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Waits until each node's name resolves and its sshd answers."""
    began = clock()
    said, said_at = "", began
    while True:
        missing = _missing(wanted, probe)
        if not missing:
            return
        text = "; ".join(f"{node.name}: {why}" for node, why in missing)
        if clock() - began >= seconds:
            names = " ".join(node.name for node, _ in missing)
            raise Missing(
                f"{len(missing)} of {len(wanted)} nodes did not answer within"
                f" {seconds:.0f} s: {text}. Look at the pods {names}:"
                " `kubectl describe pod` says why one does not run"
            )
        if text != said or clock() - said_at >= REMINDER:
            say(f"waiting for {text}")
            said, said_at = text, clock()
        sleep(PERIOD)


def _missing(
    wanted: Sequence[Node], probe: Callable[[str], str | None]
) -> list[tuple[Node, str]]:
    with ThreadPoolExecutor(max_workers=min(len(wanted), 32)) as pool:
        answers = list(pool.map(lambda node: probe(node.host), wanted))
    return [(node, why) for node, why in zip(wanted, answers) if why]
