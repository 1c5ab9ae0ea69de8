"""Open pages are right again after the portal or the API server was away, and nobody loads them again."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from cluster import Cluster
from page import Person, create, signs_in
from people import Browser as Client
from stage import Places
from test_workspaces import READY

# A browser is 100 MB to download.
pytestmark = pytest.mark.thorough
KILLS = int(os.environ.get("PORTAL_KILLS", "5"))


class Portal:
    """A portal that is killed and started again at the same address."""

    def __init__(self, start: Callable[[], Any], port: int) -> None:
        self.start, self.port = start, port
        self.begin()

    def begin(self) -> None:
        self.block = self.start()
        self.process: subprocess.Popen[str] = self.block.__enter__()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        self.block.__exit__(None, None, None)


@pytest.fixture
def mortal(
    dex: str,
    places: Places,
    start: Callable[..., Any],
    authentication: Path,
    cluster: Cluster,
) -> Iterator[Portal]:
    port = places.persons_port
    portal = Portal(lambda: start(authentication, port, "mortal"), port)
    yield portal
    portal.end()


@pytest.fixture
def tabs(mortal: Portal, chromium: Browser) -> Iterator[list[Page]]:
    """Two browsers of alice, with two tabs each."""
    address = f"https://localhost:{mortal.port}"
    opened, contexts = [], []
    for _ in range(2):
        context = chromium.new_context(ignore_https_errors=True)
        contexts.append(context)
        person = Person(context, address)
        page = person.opens()
        signs_in(page, "alice")
        opened += [page, person.opens()]
    yield opened
    for context in contexts:
        context.close()


def test_pages_are_right_after_each_kill_and_nobody_loads_them_again(
    mortal: Portal, tabs: list[Page], cluster: Cluster
) -> None:
    create(tabs[0], "steady")
    for tab in tabs:
        tab.get_by_role("row", name="steady").wait_for()
        tab.evaluate("window.isTheSame = true")
    for kill in range(KILLS):
        mortal.kill()
        # What changes while it is away: a workspace is new, one has changed, one is gone.
        manifest = {
            "apiVersion": "platform.acme.io/v1alpha1",
            "kind": "GpuDevWorkspaceClaim",
            "metadata": {"name": f"new-{kill}", "namespace": "dev-alice"},
            "spec": {"parameters": {"owner": "alice"}},
        }
        cluster.apply(manifest)
        ssh = f"ssh developer@203.0.113.{kill}"
        cluster.status("dev-alice", "steady", {**READY, "ssh": ssh})
        if kill:
            claims = "gpudevworkspaceclaims.platform.acme.io"
            cluster.kubectl("delete", claims, f"new-{kill - 1}", "-n", "dev-alice")
        mortal.begin()
        for tab in tabs:
            steady = tab.get_by_role("row", name="steady")
            expect(steady).to_contain_text(ssh, timeout=40_000)
            expect(tab.get_by_role("row", name=f"new-{kill}")).to_be_visible()
            if kill:
                gone = tab.get_by_role("row", name=f"new-{kill - 1}", exact=True)
                expect(gone).to_have_count(0)
            expect(tab.get_by_text("trying again")).to_have_count(0)
    for tab in tabs:
        assert tab.evaluate("window.isTheSame")


def test_a_session_outlives_the_portal(mortal: Portal, places: Places) -> None:
    client = Client(f"https://localhost:{mortal.port}", places.certificates.authority)
    client.sign_in("alice@acme.io")
    mortal.kill()
    mortal.begin()
    assert client.get("/api/v1/me").json()["owner"] == "alice"
