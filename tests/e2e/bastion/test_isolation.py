"""Five people, each with a workspace: nobody gets anything of anybody else, in any pair."""

import asyncio
import re
import socket
import subprocess
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bastion import channels
from bastion.belongings import (
    ANSWERED,
    KINDS,
    MENU,
    VERBS,
    Person,
    questions,
    questions_without_borders,
    settled,
    variants_of,
)
from bastion.client import Calls, Ran, connected, run
from bastion.commands import (
    NAMELESS,
    changing,
    commands_of,
    elsewhere,
    other_namespace,
    reading,
)
from bastion.door import PORT, Door, requests
from bastion.people import people
from bastion.permissive import permissive
from cluster.connecting import CONNECT
from cluster.workspaces import Key, Workspaces
from environment.cluster import Cluster

# The five people are made once, for tests that run one after the other.
pytestmark = pytest.mark.xdist_group("isolation")

METRICS = 8080
# A workspace that nobody has.
NOBODYS = "no-such-workspace"


@pytest.fixture(scope="module")
def five(
    cluster: Cluster, door: Door, keys: Callable[[str], Key]
) -> Iterator[list[Person]]:
    def settle(user: Workspaces) -> Person:
        visitor = door.enter(user)
        workspace = f"of-{user.owner}"
        visitor.says("create", workspace, "cpu-small", "--home", "1Gi")
        return settled(user, visitor, workspace)

    with people(cluster, keys, 5) as users:
        with ThreadPoolExecutor(len(users)) as threads:
            yield list(threads.map(settle, users))


def together(parts: list[Coroutine[Any, Any, None]]) -> None:
    async def all_parts() -> None:
        await asyncio.gather(*parts)

    asyncio.run(all_parts())


def test_no_operation_of_the_protocol_reaches_what_another_person_has(
    five: list[Person], door: Door
) -> None:
    protocol = "bastion/core/src/protocol.rs"
    assert variants_of(protocol, "Call") == VERBS
    assert variants_of("devctl/core/src/object.rs", "Kind") == {*KINDS, MENU}
    before = len(requests())

    async def ask(person: Person) -> None:
        async with connected(person.visitor) as connection:
            async with await Calls.open(connection) as calls:
                assert calls.welcome["Welcome"]["namespace"] == person.namespace
                await own(person, calls)
                for other in five:
                    if other is not person:
                        await others(person, other, calls)

    async def own(person: Person, calls: Calls) -> None:
        """The same questions about one's own objects have an answer."""
        for label, call in questions(person, "Trial"):
            if label in ANSWERED or label.startswith("May "):
                answer = await calls.ask(call)
                # Who may delete an object is told that it has another UID.
                is_conflict = answer.get("Err", {}).get("status") == 409
                assert "Ok" in answer or is_conflict, (label, answer)
        for call in ({"List": [MENU, "Cluster"]}, "Time"):
            assert "Ok" in await calls.ask(call), call

    async def others(person: Person, other: Person, calls: Calls) -> None:
        asked = [call for _, call in questions(other, "Stored")]
        asked += questions_without_borders(person, other)
        only = f"the bastion asks about workspaces of namespace {person.namespace} only"
        for call in asked:
            answer = await calls.ask(call)
            refused = answer.get("Err", {})
            assert (refused.get("status"), refused.get("message")) == (403, only), call

    together([ask(person) for person in five])
    # The broker refused it. The API server, which would have done so too, was not asked.
    accounts = {
        f"system:serviceaccount:{person.namespace}:gpu-workspaces.owner": person
        for person in five
    }
    made = [
        (accounts[user].namespace, one["requestURI"])
        for one in requests()[before:]
        if (user := one.get("impersonatedUser", {}).get("username")) in accounts
    ]
    assert {namespace for namespace, _ in made} == {one.namespace for one in five}
    for namespace, uri in made:
        named = re.findall(r"/namespaces/([^/?]+)", uri)
        assert set(named) <= {namespace}, uri


def test_no_channel_of_ssh_leads_past_the_bastion(
    five: list[Person], door: Door, tmp_path: Path
) -> None:
    async def control() -> dict[str, bool]:
        places = channels.Places([("127.0.0.1", 22)], ["/run/x.sock"], str(tmp_path))
        async with permissive(tmp_path) as connection:
            return await channels.opened(connection, places)

    # The same attempts succeed where a server allows them. Four types are a server's own.
    allowed = asyncio.run(control())
    refused = {name for name, is_open in allowed.items() if not is_open}
    assert refused == {"forwarded-tcpip", "forwarded-streamlocal", "x11", "auth-agent"}

    async def attempt(person: Person) -> None:
        others = [other for other in five if other is not person]
        places = channels.Places(
            tcp=[
                *((other.address, 22) for other in others),
                *((door.address(replica), PORT) for replica in range(2)),
                ("127.0.0.1", 22),
                ("127.0.0.1", METRICS),
                ("10.96.0.1", 443),
                ("169.254.169.254", 80),
                (f"{others[0].names['Pod']}.{others[0].namespace}", 22),
            ],
            sockets=["/run/gpu-bastion/broker.sock", "/proc/1/root/run/x"],
            folder="/run/gpu-bastion",
        )
        async with connected(person.visitor) as connection:
            found = await channels.opened(connection, places)
            assert not any(found.values()), found
            # The connection is still one of this person.
            assert (await run(connection, b"list -o name")).code == 0

    together([attempt(person) for person in five])


def test_no_pod_reaches_the_pod_of_another_person_or_the_bastion(
    five: list[Person], door: Door, tmp_path: Path
) -> None:
    bastion = [
        f"{door.address(replica)}:{port}"
        for replica in range(2)
        for port in (PORT, METRICS)
    ]

    def reached(person: Person) -> dict[str, str]:
        folder = tmp_path / person.user.owner
        folder.mkdir()
        known = person.visitor.workspace_key(person.workspace, folder)
        inside = person.visitor.inside(person.workspace, known)
        others = [f"{other.address}:22" for other in five if other is not person]
        open_to_all = ["127.0.0.1:22", "kubernetes.default.svc:443"]
        targets = [*others, *bastion, *open_to_all]
        ran = subprocess.run(
            [*inside, "python", "-", *targets],
            input=CONNECT,
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, ran.stderr
        seen = dict(line.rsplit(" ", 1) for line in ran.stdout.splitlines())
        expected = dict.fromkeys([*others, *bastion], "refused")
        assert seen == {**expected, **dict.fromkeys(open_to_all, "reached")}
        return seen

    with ThreadPoolExecutor(len(five)) as threads:
        assert len(list(threads.map(reached, five))) == 5
        # Without the bastion, nobody reaches a pod at all, and the bastion answers.
        pods = list(threads.map(lambda one: answers(one.address, 22), five))
        assert pods == [False] * 5
        assert answers(door.address(), PORT)


def answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=3).close()
        return True
    except OSError:
        return False


# The last test: its controls delete the workspaces.
def test_no_command_tells_or_changes_what_another_person_has(
    five: list[Person],
) -> None:
    def everything(name: str, namespace: str) -> list[list[str]]:
        return [*reading(name, namespace), *changing(name), *elsewhere(name)]

    tried = {words[0] for words in everything("x", "y")} - {"connect"}
    assert commands_of(five[0].visitor.says("--help")) == tried | NAMELESS

    async def cross(person: Person) -> None:
        async with connected(person.visitor) as connection:
            for words in reading(person.workspace, person.namespace):
                ran = await patiently(connection, words)
                assert ran.code == 0, (words, ran)
            # For everybody else it is as if the workspace did not exist.
            unknown = [
                await told(connection, words, NOBODYS)
                for words in everything(NOBODYS, person.namespace)
            ]
            for other in five:
                if other is not person:
                    seen = [
                        await told(connection, words, other.workspace)
                        for words in everything(other.workspace, person.namespace)
                    ]
                    assert seen == unknown
                    for words in other_namespace(other):
                        ran = await patiently(connection, words)
                        assert ran.code not in (None, 0, 255), (words, ran)
                        assert nothing_of(other, ran, words), (words, ran)

    async def leave(person: Person) -> None:
        """What changes something works as well, for its owner."""
        async with connected(person.visitor) as connection:
            for words in changing(person.workspace):
                ran = await patiently(connection, words)
                assert ran.code == 0, (words, ran)

    together([cross(person) for person in five])
    for person in five:
        now = person.user.workspace(person.workspace)["metadata"]
        for field in ("uid", "generation", "annotations", "deletionTimestamp"):
            assert now.get(field) == person.claim["metadata"].get(field), field
    together([leave(person) for person in five])


async def patiently(connection: channels.Connection, words: list[str]) -> Ran:
    """A person who gives commands too fast waits a second, as the bastion says."""
    while True:
        ran = await run(connection, " ".join(words).encode())
        if b"commands a second" not in ran.stderr:
            return ran
        await asyncio.sleep(1)


async def told(
    connection: channels.Connection, words: list[str], name: str
) -> tuple[int | None, str]:
    """The end of a command about a workspace, and what it says without the name."""
    ran = await patiently(connection, words)
    assert ran.code not in (None, 0, 255), (words, ran)
    return ran.code, ran.said.decode().replace(name, "NAME")


def nothing_of(person: Person, ran: Ran, words: list[str]) -> bool:
    """Whether the answer has nothing of a person but what was asked with."""
    said = ran.said.decode()
    for word in words:
        said = said.replace(word, "")
    return not any(secret in said for secret in person.secrets())
