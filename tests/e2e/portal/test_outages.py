"""Open pages are right again after the portal, the API server or the network was away, and nobody
loads them again."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, expect

from environment.cluster import Cluster
from environment.objects import Object
from environment.waiting import until
from page import Person, create, signs_in
from people import Browser
from portal.tabs import make, right
from portal.installation import Installation, SignIn

KILLS = int(os.environ.get("PORTAL_KILLS", "20"))


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
    answers: list[int | str] = []
    is_over = threading.Event()

    def ask() -> None:
        # A session may read 50 times a second.
        while not is_over.wait(0.05):
            # A connection of its own, as of one more person.
            bob.http.close()
            try:
                answers.append(bob.get("/api/v1/me", timeout=10).status_code)
            except OSError as error:
                answers.append(str(error))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    portal.restart()
    is_over.set()
    asking.join(30)
    assert set(answers) == {200} and len(answers) > 50


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
    until("one stream", lambda: portal.measured("gpu_portal_streams") == 1, 10)
