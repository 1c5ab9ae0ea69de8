"""Who has no key of a person does not learn whether there is such a person."""

import asyncio
import json
import os
import random
import statistics
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import asyncssh
import pytest

from bastion.client import connected
from bastion.door import Door, Visitor
from bastion.people import dev_user
from cluster.workspaces import Key, Workspaces
from environment.cluster import Cluster
from environment.waiting import until

SEED = int(os.environ.get("BASTION_SEED", str(random.randrange(1 << 32))))
SAMPLES = 200
# How many halves of one kind tell what noise is.
HALVES = 2_000


@dataclass
class Kind:
    """A reason why a login is refused, and the names for which it is the reason."""

    names: list[str]
    # Seconds from a request of authentication to its answer.
    none: list[float] = field(default_factory=list)
    key: list[float] = field(default_factory=list)


class Asking(asyncssh.SSHClient):
    """Offers one key, and measures how long each answer takes. OpenSSH's server answers a
    question for `none` at first (RFC 4252)."""

    def __init__(self, key: Any) -> None:
        self.key = key
        self.sent: list[float] = []
        self.answered: list[float] = []

    def connection_made(self, conn: Any) -> None:
        send = conn.send_userauth_packet

        def measured(*arguments: Any, **options: Any) -> None:
            self.sent.append(time.perf_counter())
            send(*arguments, **options)

        conn.send_userauth_packet = measured

    def public_key_auth_requested(self) -> Any:
        # asyncssh asks for a key after each answer.
        self.answered.append(time.perf_counter())
        return self.key if len(self.answered) == 1 else None


async def ask(visitor: Visitor, key: Any, kind: Kind) -> None:
    client = Asking(key)
    options: dict[str, Any] = {"client_factory": lambda: client, "client_keys": ()}
    with pytest.raises(asyncssh.PermissionDenied):
        async with connected(visitor, **options):
            pass
    (none, offered), (first, second) = client.sent, client.answered
    kind.none.append(first - none)
    kind.key.append(second - offered)


@pytest.fixture
def kinds(cluster: Cluster, door: Door, keys: Callable[[str], Key]) -> Iterator[Any]:
    """A name for each sample: OpenSSH draws a delay for each name. Crossplane leaves these
    DevUsers alone, since their namespaces are of no use here."""
    key = keys("equal")
    paused = {"crossplane.io/paused": "true"}
    tag = uuid.uuid4().hex[:6]

    def users(kind: str, **spec: Any) -> list[str]:
        names = [f"{kind}-{tag}-{number}" for number in range(SAMPLES)]
        made = [dev_user(name, publicKeys=[key.public], **spec) for name in names]
        for one in made:
            one["metadata"] |= {"annotations": paused, "labels": {"equal": tag}}
        items = {"apiVersion": "v1", "kind": "List", "items": made}
        cluster.kubectl("create", "-f", "-", stdin=json.dumps(items))
        status = {"status": {"namespace": f"dev-{tag}"}}
        cluster.kubectl(
            *("patch", "devusers", *names, "--subresource=status", "--type=merge"),
            *("-p", json.dumps(status)),
        )
        return names

    with ThreadPoolExecutor() as threads:
        left = threads.submit(users, "left", suspended=True)
        here = threads.submit(users, "here")
    found = {
        "unknown": Kind([f"nobody-{tag}-{number}" for number in range(2 * SAMPLES)]),
        "suspended": Kind(left.result()),
        "wrong key": Kind(here.result()),
    }
    try:
        last = Workspaces(cluster, f"dev-{tag}", found["wrong key"].names[-1], key)
        until("the bastion to know them", lambda: knows(door, last), 60)
        yield found, key
    finally:
        cluster.kubectl("delete", "devusers", "-l", f"equal={tag}", "--wait=false")


def knows(door: Door, user: Workspaces) -> bool:
    return door.visitor(user.owner, user.key)("version").returncode != 255


def noise(samples: list[float], dice: random.Random) -> float:
    """How far the medians of two halves of one kind are from each other: at most this far
    in 999 of 1,000 cases."""
    apart = []
    for _ in range(HALVES):
        shuffled = dice.sample(samples, len(samples))
        half = len(shuffled) // 2
        medians = [
            statistics.median(part) for part in (shuffled[:half], shuffled[half:])
        ]
        apart.append(abs(medians[0] - medians[1]))
    return sorted(apart)[-HALVES // 1_000]


@pytest.mark.alone
def test_unknown_suspended_and_wrong_key_take_the_same_time(
    kinds: tuple[dict[str, Kind], Key], door: Door, keys: Callable[[str], Key]
) -> None:
    dice = random.Random(SEED)
    found, right = kinds
    # The key of a person who is suspended is right. The others' is of nobody.
    wrong = keys("wrong")
    read = {key: asyncssh.load_keypairs([str(key.private)]) for key in (right, wrong)}
    visitor = door.visitor("nobody", wrong)
    asked = [(kind, name) for kind, one in found.items() for name in one.names]
    dice.shuffle(asked)

    async def all_of_them() -> None:
        for kind, name in asked:
            key = right if kind == "suspended" else wrong
            await ask(replace(visitor, name=name), read[key], found[kind])

    asyncio.run(all_of_them())
    print(f"BASTION_SEED={SEED}; milliseconds of {SAMPLES} samples")
    differences = {}
    for request in ("none", "key"):
        samples = {kind: getattr(one, request) for kind, one in found.items()}
        for kind, some in samples.items():
            cuts = statistics.quantiles(some, n=20)
            shown = [f"{1_000 * cuts[at]:.2f}" for at in (0, 4, 9, 14, 18)]
            print(f"{request} {kind}: at 5, 25, 50, 75, 95 %: {' '.join(shown)}")
        limit = noise(samples["unknown"], dice)
        print(f"{request}: noise {1_000 * limit:.2f}")
        median = statistics.median(samples["unknown"])
        for kind in ("suspended", "wrong key"):
            apart = abs(statistics.median(samples[kind]) - median)
            if apart > limit:
                differences[request, kind] = 1_000 * apart
    assert not differences


def test_unknown_suspended_and_wrong_key_are_told_the_same(
    door: Door, cluster: Cluster, alice: Workspaces, bob: Workspaces
) -> None:
    door.enter(alice)
    door.enter(bob)
    suspend = json.dumps({"spec": {"suspended": True}})
    cluster.kubectl("patch", "devuser", bob.owner, "--type=merge", "-p", suspend)
    leaver = door.visitor(bob.owner, bob.key)
    until("the person to be out", lambda: leaver("whoami").returncode == 255, 30)

    told = {}
    for kind, visitor in {
        "unknown": door.visitor("nobody-knows", alice.key),
        "suspended": leaver,
        "wrong key": door.visitor(alice.owner, bob.key),
    }.items():
        ran = visitor("whoami")
        told[kind] = (
            ran.returncode,
            ran.stdout,
            ran.stderr.replace(visitor.name, "NAME"),
        )
    said = f"NAME@{door.address()}: Permission denied (publickey).\n"
    assert told == dict.fromkeys(told, (255, "", said))
