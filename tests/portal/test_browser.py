"""People use the portal in a real browser."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

import crossplane
from cluster import CLAIMS, Cluster
from page import Person, create, is_signed_out_elsewhere, signs_in, tab_to
from processes import until
from test_workspaces import READY, RUN, annotations

# A browser is 100 MB to download.
pytestmark = pytest.mark.thorough


@pytest.fixture
def person(chromium: Browser, portal: str) -> Iterator[Person]:
    """A person who is not signed in. No page of theirs breaks the portal's own policy."""
    with chromium.new_context(ignore_https_errors=True) as context:
        person = Person(context, portal)
        yield person
        assert person.reports == []


def test_a_person_creates_watches_and_deletes_a_workspace(
    person: Person, cluster: Cluster
) -> None:
    page = person.opens()
    signs_in(page, "alice")
    expect(page.get_by_text("You have no workspaces yet")).to_be_visible()
    create(page, "vision")
    row = page.get_by_role("row", name="vision")
    expect(row).to_contain_text("Pending")
    cluster.status("dev-alice", "vision", READY)
    expect(row).to_contain_text(READY["ssh"])
    expect(page.get_by_role("status")).to_have_text("vision is ready.")
    row.get_by_role("button", name="Delete vision").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row).to_contain_text("Deleting")
    cluster.collected("dev-alice", "vision")
    expect(row).to_have_count(0)
    assert cluster.kubectl("get", CLAIMS, "-n", "dev-alice", "-o", "name") == ""


def test_the_same_by_keyboard_alone(person: Person, cluster: Cluster) -> None:
    page = person.opens()
    signs_in(page, "alice")
    field = page.locator("#name")
    tab_to(page, "#name")
    page.keyboard.type("keys")
    page.keyboard.press("Enter")
    row = page.get_by_role("row", name="keys")
    expect(row).to_contain_text("Pending")
    expect(field).to_have_value("")
    tab_to(page, "button[aria-label='Delete keys']")
    page.keyboard.press("Enter")
    # The safe answer has the focus.
    expect(page.get_by_role("button", name="Keep it")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(row).to_contain_text("Deleting")
    cluster.collected("dev-alice", "keys")
    expect(row).to_have_count(0)


def test_a_field_that_is_refused_says_so(person: Person) -> None:
    page = person.opens()
    signs_in(page, "alice")
    create(page, "Not a name")
    field = page.locator("#name")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#name-help")).to_contain_text("lower-case letters")
    expect(field).to_have_value("Not a name")


def test_all_tabs_of_a_browser_have_one_stream(
    person: Person, cluster: Cluster, measured: Callable[[str], float]
) -> None:
    first = person.opens()
    signs_in(first, "alice")
    tabs = [first, *(person.opens() for _ in range(11))]
    create(first, "everywhere")
    for tab in tabs:
        expect(tab.get_by_role("row", name="everywhere")).to_be_visible()
    cluster.status("dev-alice", "everywhere", READY)
    for tab in tabs:
        expect(tab.get_by_role("row", name="everywhere")).to_contain_text(READY["ssh"])
    assert measured("gpu_portal_streams") == 1
    for tab in tabs:
        tab.close()
    until("the stream to end", lambda: measured("gpu_portal_streams") == 0, 20)


def test_who_is_signed_out_elsewhere_sees_it_at_once_and_asks_no_more(
    person: Person, cluster: Cluster
) -> None:
    sessions = ("-n", "gpu-portal", "-l", "platform.acme.io/portal-session")
    is_signed_out_elsewhere(
        person, lambda: cluster.kubectl("delete", "secrets", *sessions)
    )


PAYLOADS = [
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "javascript:alert(1)",
    "\u202eevil\u202c",
    "ssh -oProxyCommand=alert developer@evil",
    "{{7*7}}",
    "'\"><svg onload=alert(1)>",
]


def test_nothing_in_a_claim_is_markup(person: Person, cluster: Cluster) -> None:
    page = person.opens()
    signs_in(page, "alice")
    page.on("dialog", lambda dialog: person.reports.append(dialog.message))
    create(page, "evil")
    row = page.get_by_role("row", name="evil")
    expect(row).to_contain_text("Pending")
    for payload in PAYLOADS:
        status = {
            "phase": "Ready",
            "ssh": payload,
            "message": payload,
            "machine": payload,
        }
        cluster.status("dev-alice", "evil", status)
        expect(row.locator("code")).to_have_text(payload)
        expect(row.locator("small")).to_have_text(payload)
    assert row.locator("img, script, svg").count() == 0
    links = row.locator("a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
    assert links == ["/workspaces/dev-alice/evil"]


def test_a_person_follows_one_workspace_stops_it_and_extends_its_run(
    person: Person, cluster: Cluster
) -> None:
    page = person.opens()
    signs_in(page, "alice")
    create(page, "mine")
    page.get_by_role("link", name="mine").click()
    expect(page.get_by_role("heading", name="mine")).to_be_visible()
    condition = {"type": "ComputeReady", "status": "False", "reason": "Launching"}
    at = {
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "message": "the instance starts",
    }
    cluster.status("dev-alice", "mine", {"conditions": [{**condition, **at}]})
    expect(page.get_by_role("row", name="ComputeReady")).to_contain_text(
        "instance starts"
    )
    cluster.status("dev-alice", "mine", {**READY, "lifecycle": RUN})
    expect(page.locator("code").first).to_have_text(READY["ssh"])
    page.get_by_role("button", name="Run 4h longer").click()
    until("the wish", lambda: "platform.acme.io/extend-until" in annotations(cluster))
    extension = {
        "askedUntil": "2026-01-03T00:00:00Z",
        "grantedUntil": "2026-01-02T00:00:00Z",
        "message": "the policy allows 24h",
    }
    cluster.status("dev-alice", "mine", {"lifecycle": {**RUN, "extension": extension}})
    # What was asked for, what was granted, and why it is less.
    told = page.get_by_text("the policy allows 24h")
    expect(told).to_contain_text("Asked for")
    expect(told).to_contain_text("granted until")
    page.get_by_role("button", name="Stop", exact=True).click()
    until("the wish", lambda: "platform.acme.io/stop" in annotations(cluster))
    cluster.status("dev-alice", "mine", {"phase": "Stopped"})
    page.get_by_role("button", name="Start").click()
    until("the wish", lambda: "platform.acme.io/resume" in annotations(cluster))


def test_a_person_chooses_a_machine_of_the_platform_by_its_price(
    person: Person, cluster: Cluster
) -> None:
    status = {
        "placements": "EC2, Cluster",
        "gpu": "1 x T4 16Gi",
        "instanceHourlyUsd": 0.5,
    }
    cluster.offer(status)
    page = person.opens()
    signs_in(page, "alice")
    machine = page.get_by_label("Machine", exact=True)
    offer = "t4 · 1 x T4 16Gi · an EC2 instance · $0.50 an hour"
    page.reload()
    expect(machine.locator("option", has_text=offer)).to_have_count(1)
    machine.select_option(label=offer)
    create(page, "chosen")
    expect(page.get_by_role("row", name="chosen")).to_be_visible()
    parameters = cluster.get(CLAIMS, "dev-alice", "chosen")["spec"]["parameters"]
    assert parameters == {"flavor": "t4", "placement": "EC2", "owner": "alice"}


def test_a_person_reads_price_and_stop_before_anything_exists(
    person: Person, cluster: Cluster
) -> None:
    page = person.opens()
    signs_in(page, "alice")
    page.locator("#name").fill("vision")
    page.get_by_label("Machine", exact=True).select_option("type/g4dn.xlarge")
    told = page.get_by_role("region", name="What you get")
    # The policy of the examples lets nobody in who names no network.
    expect(told.get_by_role("alert")).to_contain_text("nobody can connect")
    page.get_by_label("Allowed CIDRs").fill("203.0.113.0/24")
    expect(told).to_contain_text("at most $0.53 an hour, $37.87 for the longest run")
    expect(told).to_contain_text("after 72h at the latest, after 2h without use")
    expect(told.get_by_role("alert")).to_have_count(0)
    page.get_by_text("More settings").click()
    lifetime = page.get_by_label("Max lifetime")
    lifetime.fill("900d")
    expect(lifetime).to_have_attribute("aria-invalid", "true")
    help_of = page.locator("[id='/parameters/lifecycle/maxLifetime-help']")
    expect(help_of.get_by_role("alert")).to_be_visible()
    assert claims(cluster) == []
    lifetime.fill("8h")
    expect(told).to_contain_text("$4.21 for the longest run")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("row", name="vision")).to_be_visible()
    (made,) = claims(cluster)
    assert made["spec"]["parameters"] == {
        "owner": "alice",
        "placement": "EC2",
        "instanceType": "g4dn.xlarge",
        "lifecycle": {"maxLifetime": "8h", "state": "Running"},
        "ssh": {"allowedCidrs": ["203.0.113.0/24"]},
    }


def test_a_budget_that_is_too_small_is_marked_at_the_machine(
    person: Person, cluster: Cluster
) -> None:
    crossplane.counts_money(cluster)
    crossplane.budget(cluster, "alice", 1)
    page = person.opens()
    signs_in(page, "alice")
    machine = page.get_by_label("Machine", exact=True)
    marked = page.locator("#machine-help").get_by_role("alert")

    def is_told() -> bool:
        # The portal learns of a changed platform a moment later.
        page.reload()
        page.locator("#name").fill("vision")
        machine.select_option("type/g4dn.xlarge")
        page.get_by_label("Allowed CIDRs").fill("203.0.113.0/24")
        told = page.get_by_role("region", name="What you get")
        expect(told).to_contain_text("an hour")
        return marked.count() == 1

    try:
        until("the budget", is_told)
        expect(marked).to_contain_text("budget")
        expect(machine).to_have_attribute("aria-invalid", "true")
        assert claims(cluster) == []
    finally:
        crossplane.reset(cluster)
        crossplane.budget(cluster, "alice", None)


def test_a_field_that_the_platform_adds_is_in_the_form(
    person: Person, cluster: Cluster
) -> None:
    (definition,) = crossplane.documents(
        crossplane.ROOT / "xrds/gpudevworkspaces.platform.acme.io.yaml"
    )
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    parameters = schema["properties"]["spec"]["properties"]["parameters"]
    parameters["properties"]["paintColour"] = {"type": "string", "enum": ["red"]}
    cluster.apply(definition)
    page = person.opens()
    signs_in(page, "alice")

    def has_it() -> bool:
        page.reload()
        page.get_by_text("More settings").click()
        return page.get_by_label("Paint colour").count() == 1

    until("the field", has_it)
    page.get_by_label("Paint colour").select_option("red")
    crossplane.reset(cluster)


def claims(cluster: Cluster) -> list[dict[str, Any]]:
    found = json.loads(cluster.kubectl("get", CLAIMS, "-A", "-o", "json"))
    items: list[dict[str, Any]] = found["items"]
    return items
