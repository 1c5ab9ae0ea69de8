"""Open pages are right again after the portal, the API server or the network was away, and nobody
loads them again."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, expect

from environment.cluster import Cluster
from environment.objects import Object
from environment.platform import claim
from environment.waiting import until
from page import Person, create, signs_in
from people import Browser
from portal.installation import Installation, SignIn

KILLS = int(os.environ.get("PORTAL_KILLS", "20"))
# How long a page may take to be right again.
RIGHT_AGAIN = 45_000


@pytest.fixture
def tabs(chromium: Chromium, sign_in: SignIn) -> Iterator[list[Page]]:
    """Two browsers of alice, with two tabs each."""
    people, opened = [], []
    for _ in range(2):
        context = chromium.new_context(ignore_https_errors=True)
        person = Person(context, sign_in.portal)
        people.append(person)
        page = person.opens()
        signs_in(page, "alice")
        opened += [page, person.opens()]
    for tab in opened:
        expect(tab.get_by_text("You have no workspaces yet")).to_be_visible()
        tab.evaluate("window.isTheSame = true")
    yield opened
    for tab in opened:
        assert tab.evaluate("window.isTheSame"), "the page was loaded again"
    for person in people:
        person.context.close()
        # What the network refuses is an error for the console, too.
        broken = [one for one in person.reports if "Content Security Policy" in one]
        assert broken == []


def make(cluster: Cluster, name: str) -> None:
    """A claim that somebody makes with kubectl."""
    cluster.apply(claim("dev-alice", name, {"owner": "alice"}))


def right(tabs: list[Page], names: set[str]) -> None:
    """Each page shows these workspaces, and that it is connected."""
    for tab in tabs:
        rows = tab.locator("tbody th")
        for name in names:
            row = tab.get_by_role("row", name=name, exact=False)
            expect(row).to_be_visible(timeout=RIGHT_AGAIN)
        expect(rows).to_have_count(len(names), timeout=RIGHT_AGAIN)
        expect(tab.get_by_text("trying again")).to_have_count(0, timeout=RIGHT_AGAIN)


@contextmanager
def load(signed_in: Callable[[str], Browser]) -> Iterator[None]:
    """Somebody lists all the time, and opens streams."""
    is_over = threading.Event()
    bob = signed_in("bob")

    def ask() -> None:
        while not is_over.is_set():
            try:
                bob.get("/api/v1/workspaces", timeout=5)
            except OSError:
                # A replica was killed meanwhile.
                pass

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    yield
    is_over.set()
    for thread in threads:
        thread.join(30)


def test_pages_are_right_after_each_kill_under_load(
    tabs: list[Page],
    cluster: Cluster,
    portal: Installation,
    signed_in: Callable[[str], Browser],
) -> None:
    with load(signed_in):
        for kill in range(KILLS):
            # Both replicas from time to time, so that nobody is left who knows.
            victims = portal.ready()[: 2 if kill % 5 == 0 else 1]
            for victim in victims:
                destroy(cluster, victim)
            name = f"new-{kill}"
            make(cluster, name)
            if kill:
                cluster.delete_claim(f"new-{kill - 1}", "dev-alice", 120)
            right(tabs, {name})
            portal.await_replicas()


def destroy(cluster: Cluster, pod: Object) -> None:
    """Kills the process, and deletes the pod: in the same one, the kubelet would wait longer after
    each crash."""
    for process in cluster.processes(pod):
        os.kill(process, signal.SIGKILL)
    name, namespace = (pod["metadata"][key] for key in ("name", "namespace"))
    cluster.kubectl("delete", "pod", name, "-n", namespace, "--now", "--wait=false")


def test_pages_are_right_after_the_api_server_was_restarted(
    tabs: list[Page], cluster: Cluster, sign_in: SignIn
) -> None:
    make(cluster, "before")
    right(tabs, {"before"})
    restart = ("cargo", "xtask", "cluster", "restart", "kube-apiserver")
    subprocess.run(
        [*restart, "--name", sign_in.state.name], check=True, capture_output=True
    )
    make(cluster, "after")
    right(tabs, {"before", "after"})


def test_pages_are_right_after_a_minute_without_a_network(
    tabs: list[Page], cluster: Cluster, sign_in: SignIn
) -> None:
    make(cluster, "before")
    right(tabs, {"before"})
    with cut(sign_in):
        make(cluster, "meanwhile")
        cluster.delete_claim("before", "dev-alice", 120)
        # The outage itself takes this minute.
        tabs[0].wait_for_timeout(60_000)
        for tab in tabs:
            expect(tab.get_by_role("row", name="meanwhile")).to_have_count(0)
    right(tabs, {"meanwhile"})


@contextmanager
def cut(sign_in: SignIn) -> Iterator[None]:
    """No packet goes between people and the portal, and nobody is told."""
    init = json.loads((sign_in.state / "init.json").read_text())["pid"]
    nft = ["nsenter", f"--net=/proc/{init}/ns/net", "nft"]
    rules = """table ip cut {
        chain forward {
            type filter hook forward priority -10;
            tcp dport 8443 drop
            tcp sport 8443 drop
        }
    }"""
    subprocess.run([*nft, "-f", "-"], input=rules, text=True, check=True)
    try:
        yield
    finally:
        subprocess.run([*nft, "delete", "table", "ip", "cut"], check=True)


def test_nobodys_request_fails_while_the_portal_is_updated(
    portal: Installation, signed_in: Callable[[str], Browser]
) -> None:
    bob = signed_in("bob")
    answers: list[int] = []
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            # A connection of its own, as of one more person.
            bob.http.close()
            answers.append(bob.get("/api/v1/me", timeout=10).status_code)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    portal.restart()
    is_over.set()
    asking.join(30)
    assert len(answers) > 50 and set(answers) == {200}


def test_all_tabs_of_a_browser_have_one_stream(
    person: Person, portal: Installation
) -> None:
    until("no stream", lambda: portal.measured("gpu_portal_streams") == 0)
    first = person.opens()
    signs_in(first, "alice")
    tabs = [first, *(person.opens() for _ in range(11))]
    create(first, "everywhere")
    for tab in tabs:
        expect(tab.get_by_role("row", name="everywhere")).to_be_visible()
    assert portal.measured("gpu_portal_streams") == 1
