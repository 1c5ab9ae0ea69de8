"""Every page in every state is readable by everybody, in light and dark."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from cluster import ROOT, Cluster
from page import Person, create, signs_in
from test_workspaces import READY, RUN

# A browser is 100 MB to download.
pytestmark = pytest.mark.thorough
AXE = ROOT / "portal/web/node_modules/axe-core/axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
FULL = {
    **READY,
    "message": "an instance is lost, and a replacement is being created",
    "hostKeys": [
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAliceAliceAliceAliceAliceAliceAliceAl"
    ],
    "cost": {
        "hourlyUsd": 0.526,
        "soFarUsd": 12.5,
        "projectedUsd": 20,
        "asOf": "2026-01-01T00:00:00Z",
        "source": "SpotPrice",
        "month": "2026-01",
    },
    "conditions": [
        {
            "type": "ComputeReady",
            "status": "False",
            "reason": "Launching",
            "message": "the instance starts",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
    "lifecycle": {
        **RUN,
        "stopsAt": "2026-01-01T10:00:00Z",
        "stopsBecause": "MaxLifetime",
        "extension": {
            "askedUntil": "2026-01-03T00:00:00Z",
            "grantedUntil": "2026-01-02T00:00:00Z",
            "message": "the policy allows 24h",
        },
    },
}


@pytest.fixture(params=["light", "dark"])
def person(
    chromium: Browser, portal: str, request: pytest.FixtureRequest
) -> Iterator[Person]:
    options: dict[str, Any] = {
        "color_scheme": request.param,
        "ignore_https_errors": True,
    }
    with chromium.new_context(**options) as context:
        person = Person(context, portal)
        yield person
        assert person.reports == []


def readable(page: Page, name: str) -> None:
    """No rule of accessibility is broken, at this size and at 400 %, where nothing is wider than
    the window."""
    # By the protocol of developer tools, because the page's own policy lets no script in.
    page.evaluate(AXE.read_text())
    found = page.evaluate(
        "tags => axe.run({runOnly: {type: 'tag', values: tags}})", RULES
    )
    broken = [
        (one["id"], [node["html"] for node in one["nodes"]])
        for one in found["violations"]
    ]
    assert broken == [], name
    assert len(found["passes"]) > 10
    folder = os.environ.get("PICTURES")
    if folder:
        scheme = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
        path = Path(folder) / f"{name}-{'dark' if scheme else 'light'}.png"
        page.screenshot(path=path, full_page=True)
    size = page.viewport_size
    page.set_viewport_size({"width": 320, "height": 256})
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 320, f"{name} is {width} wide at 400 %"
    assert size is not None
    page.set_viewport_size(size)


def test_every_page_and_state_is_readable(person: Person, cluster: Cluster) -> None:
    page = person.opens()
    page.get_by_role("link", name="Sign in").wait_for()
    readable(page, "signed-out")
    signs_in(page, "alice")
    page.get_by_text("You have no workspaces yet").wait_for()
    readable(page, "empty")
    create(page, "Not a name")
    expect(page.locator("#name-help [role=alert]")).to_be_visible()
    readable(page, "refused-field")
    page.locator("#name").fill("vision")
    page.get_by_label("Machine", exact=True).select_option("type/g4dn.xlarge")
    told = page.get_by_role("region", name="What you get")
    expect(told.get_by_role("alert")).to_contain_text("nobody can connect")
    readable(page, "would-not-start")
    page.get_by_label("Allowed CIDRs").fill("203.0.113.0/24")
    expect(told).to_contain_text("for the longest run")
    page.get_by_text("More settings").click()
    page.get_by_label("Max lifetime").fill("900d")
    expect(page.get_by_label("Max lifetime")).to_have_attribute("aria-invalid", "true")
    readable(page, "form")
    page.get_by_label("Max lifetime").fill("")
    create(page, "vision")
    row = page.get_by_role("row", name="vision")
    expect(row).to_contain_text("Pending")
    readable(page, "pending")
    cluster.status("dev-alice", "vision", FULL)
    expect(row).to_contain_text(READY["ssh"])
    readable(page, "ready")
    row.get_by_role("button", name="Delete vision").click()
    page.get_by_role("dialog").wait_for()
    readable(page, "question")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="vision").click()
    page.get_by_role("row", name="ComputeReady").wait_for()
    page.get_by_text("Host keys").click()
    page.get_by_role("heading", name="What has happened").wait_for()
    readable(page, "workspace")
    page.get_by_role("button", name="Change the settings").click()
    page.get_by_label("Max lifetime").fill("8h")
    expect(page.get_by_role("button", name="Save")).to_be_enabled()
    readable(page, "settings")
    page.goto(f"{person.portal}/workspaces/dev-alice/absent")
    page.get_by_text("There is no workspace").wait_for()
    readable(page, "absent")


def test_a_person_without_an_account_reads_why(person: Person) -> None:
    page = person.opens()
    signs_in(page, "nobody")
    page.get_by_text("no DevUser").wait_for()
    readable(page, "no-account")
