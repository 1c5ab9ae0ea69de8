"""A person makes a workspace in the portal, works in it, and deletes it."""

from pathlib import Path

from playwright.sync_api import Page, expect

from cluster.workspaces import Key
from environment.cluster import CLAIMS, Cluster
from page import Person, create, signs_in
from portal.shell import pasted

# A machine boots, installs its software, and EC2 shows its console.
BOOT = 300_000


def test_a_person_makes_uses_and_deletes_a_workspace_by_mouse(
    person: Person, people: dict[str, Key], cluster: Cluster, tmp_path: Path
) -> None:
    page = person.opens()
    signs_in(page, "alice")
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
    expect(told).to_contain_text("granted until", timeout=60_000)

    page.get_by_role("button", name="Stop", exact=True).click()
    start = page.get_by_role("button", name="Start")
    expect(start).to_be_visible(timeout=120_000)
    expect(page.locator(".phase")).to_have_text("Stopped", timeout=120_000)
    start.click()
    expect(page.locator(".phase")).to_have_text("Ready", timeout=BOOT)

    page.get_by_role("link", name="All workspaces").click()
    row.get_by_role("button", name="Delete vision").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0, timeout=120_000)
    assert cluster.kubectl("get", CLAIMS, "-n", "dev-alice", "-o", "name") == ""
