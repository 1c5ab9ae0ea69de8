"""A person makes a workspace in the portal, works in it, and deletes it."""

import re
from datetime import datetime
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from cluster.workspaces import Key
from environment.cluster import CLAIMS, Cluster
from page import Person, create, signs_in, signs_in_by_mouse, tab_to
from portal.shell import pasted

# A machine boots, installs its software, and EC2 shows its console.
BOOT = 300_000
# The platform stops or removes what people stop and delete.
END = 120_000


def test_a_person_makes_uses_and_deletes_a_workspace_by_mouse(
    person: Person, people: dict[str, Key], cluster: Cluster, tmp_path: Path
) -> None:
    page = person.opens()
    signs_in_by_mouse(page, "alice")
    create(page, "vision")
    row = page.get_by_role("row", name="vision")
    expect(row).to_contain_text("Ready", timeout=BOOT)
    row.get_by_role("link", name="vision").click()

    # The line logs in as it is, and asks nothing, since the page shows the host keys, too.
    line = page.locator("code").first.inner_text()
    page.get_by_text("Host keys").click()
    known = page.locator("details code").all_inner_texts()
    said = pasted(line, known, people["alice"], tmp_path, "id -un")
    assert "developer" in said.splitlines()

    page.get_by_role("button", name="Run 4h longer").click()
    # The policy allows one hour.
    told = page.get_by_text("Asked for")
    expect(told).to_contain_text("granted until", timeout=END)
    asked, granted = times(told)
    assert (asked - granted).total_seconds() == 3 * 60 * 60

    page.get_by_role("button", name="Stop", exact=True).click()
    phase = page.locator(".phase")
    expect(phase).to_have_text("Stopped", timeout=END)
    page.get_by_role("button", name="Start").click()
    expect(phase).to_have_text("Ready", timeout=BOOT)

    page.get_by_role("link", name="All workspaces").click()
    row.get_by_role("button", name="Delete vision").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0, timeout=END)
    assert claims(cluster) == ""


def test_a_person_makes_stops_and_deletes_a_workspace_by_keyboard_alone(
    person: Person, cluster: Cluster
) -> None:
    page = person.opens()
    signs_in(page, "alice")
    tab_to(page, "#name")
    page.keyboard.type("keys")
    page.keyboard.press("Enter")
    row = page.get_by_role("row", name="keys")
    expect(row).to_contain_text("Ready", timeout=BOOT)
    tab_to(page, "a[href='/workspaces/dev-alice/keys']")
    page.keyboard.press("Enter")

    phase = page.locator(".phase")
    expect(phase).to_have_text("Ready")
    focus(page, page.get_by_role("button", name="Stop", exact=True))
    page.keyboard.press("Enter")
    expect(phase).to_have_text("Stopped", timeout=END)

    focus(page, page.get_by_role("link", name="All workspaces"))
    page.keyboard.press("Enter")
    expect(row).to_contain_text("Stopped")
    tab_to(page, "button[aria-label='Delete keys']")
    page.keyboard.press("Enter")
    # The safe answer has the focus.
    expect(page.get_by_role("button", name="Keep it")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(row).to_have_count(0, timeout=END)
    assert claims(cluster) == ""


def focus(page: Page, wanted: Locator) -> None:
    """Presses Tab until something has the focus."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if wanted.evaluate("one => one === document.activeElement"):
            return
    raise AssertionError(f"Tab does not reach {wanted}")


def times(told: Locator) -> tuple[datetime, datetime]:
    """When a person asked to stop, and when the policy allows it, as the page says it."""
    text = told.inner_text()
    found = re.search(r"Asked for (.+ [AP]M), granted until (.+ [AP]M): .+", text)
    assert found, text
    shown = "%m/%d/%Y, %I:%M:%S %p"
    # Chromium has a narrow blank before AM and PM.
    asked, granted = (
        datetime.strptime(one.replace("\u202f", " "), shown) for one in found.groups()
    )
    return asked, granted


def claims(cluster: Cluster) -> str:
    return cluster.kubectl("get", CLAIMS, "-n", "dev-alice", "-o", "name")
