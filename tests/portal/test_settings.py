"""People change the settings of a workspace in a real browser."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import crossplane
from cluster import CLAIMS, Cluster
from page import Person, signs_in
from test_workspaces import READY

# A browser is 100 MB to download.
pytestmark = pytest.mark.thorough
OFFICE = {"allowedCidrs": ["203.0.113.0/24"]}
TRACKED = {"argocd.argoproj.io/tracking-id": "vision:platform.acme.io/x:dev-alice/mine"}


@pytest.fixture
def page(
    chromium: Browser, portal: str, cluster: Cluster, request: pytest.FixtureRequest
) -> Iterator[Page]:
    """alice at the settings of a workspace whose machine runs."""
    annotations = getattr(request, "param", {})
    cluster.apply(
        {
            "apiVersion": "platform.acme.io/v1alpha1",
            "kind": "GpuDevWorkspaceClaim",
            "metadata": {
                "name": "mine",
                "namespace": "dev-alice",
                "annotations": annotations,
            },
            "spec": {
                "parameters": {
                    "owner": "alice",
                    "instanceType": "g4dn.xlarge",
                    "capacityType": "Spot",
                    "ssh": OFFICE,
                }
            },
        }
    )
    cluster.status("dev-alice", "mine", READY)
    crossplane.composes(cluster, "dev-alice", "mine")
    with chromium.new_context(ignore_https_errors=True) as context:
        person = Person(context, portal)
        page = person.opens("/workspaces/dev-alice/mine")
        signs_in(page, "alice")
        page.get_by_role("button", name="Change the settings").click()
        yield page
        assert person.reports == []
    crossplane.reset(cluster)


def parameters(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.get(CLAIMS, "dev-alice", "mine")["spec"]
    parameters: dict[str, Any] = found["parameters"]
    return parameters


def test_a_person_reads_what_a_change_does_before_they_make_it(
    page: Page, cluster: Cluster
) -> None:
    save = page.get_by_role("button", name="Save")
    expect(save).to_be_disabled()
    told = page.get_by_role("region", name="What you get")
    page.get_by_label("State").select_option("Stopped")
    expect(told.get_by_role("alert")).to_contain_text("The machine ends")
    page.get_by_label("State").select_option("Running")
    page.get_by_label("Max lifetime").fill("8h")
    expect(told).to_contain_text("The machine stays")
    expect(told).to_contain_text("after 8h at the latest")
    save.click()
    expect(page.get_by_text("The settings of mine are changed")).to_be_visible()
    assert parameters(cluster)["lifecycle"]["maxLifetime"] == "8h"
    assert parameters(cluster)["ssh"] == OFFICE


def test_a_change_that_the_platform_does_not_allow_is_marked(page: Page) -> None:
    field = page.get_by_label("Max lifetime")
    field.fill("900d")
    expect(field).to_have_attribute("aria-invalid", "true")
    # The API server refuses it when it is saved.
    cidrs = page.get_by_label("Allowed CIDRs")
    cidrs.fill("no network")
    page.get_by_role("button", name="Save").click()
    expect(cidrs).to_have_attribute("aria-invalid", "true")


def test_of_two_people_who_edit_one_workspace_the_second_is_told(
    page: Page, cluster: Cluster
) -> None:
    lifetime = page.get_by_label("Max lifetime")
    lifetime.fill("8h")
    patch = {"spec": {"parameters": {"lifecycle": {"stopAfterIdle": "1h"}}}}
    cluster.kubectl(
        *("patch", CLAIMS, "mine", "-n", "dev-alice", "--type=merge"),
        *("-p", json.dumps(patch)),
    )
    page.get_by_role("button", name="Save").click()
    told = page.get_by_role("alert").filter(has_text="Somebody else changed")
    expect(told).to_contain_text("Nothing of yours is saved")
    assert "maxLifetime" not in parameters(cluster)["lifecycle"]
    told.get_by_role("button", name="Read them again").click()
    expect(page.get_by_label("Stop after idle")).to_have_value("1h")
    lifetime.fill("8h")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The settings of mine are changed")).to_be_visible()
    assert parameters(cluster)["lifecycle"]["maxLifetime"] == "8h"


@pytest.mark.parametrize("page", [TRACKED], indirect=True)
def test_a_workspace_of_git_shows_the_change_to_commit(
    page: Page, cluster: Cluster
) -> None:
    before = parameters(cluster)
    page.get_by_label("Max lifetime").fill("8h")
    change = page.locator("pre")
    expect(change).to_have_text(
        re.compile('spec:\n  parameters:\n    lifecycle:\n      maxLifetime: "8h"')
    )
    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    assert parameters(cluster) == before


def test_a_policy_that_changes_after_the_preview_refuses_the_workspace_with_words(
    page: Page, cluster: Cluster, portal: str
) -> None:
    page.goto(f"{portal}/")
    page.locator("#name").fill("late")
    page.get_by_label("Machine", exact=True).select_option("type/g5.xlarge")
    page.get_by_label("Allowed CIDRs").fill("203.0.113.0/24")
    told = page.get_by_role("region", name="What you get")
    expect(told).to_contain_text("at most $1.01 an hour")
    composition = crossplane.composition("gpudevworkspaces")
    composition["spec"]["pipeline"][0]["input"]["allowedInstanceTypes"] = ["g4dn.*"]
    cluster.apply(composition)
    # The page does not ask again: nothing in the form changes.
    create = page.get_by_role("button", name="Create")
    create.click()
    expect(
        page.get_by_role("alert").filter(has_text="g5.xlarge is not allowed")
    ).to_be_visible()
    names = cluster.kubectl("get", CLAIMS, "-A", "-o", "name").split()
    assert [name.split("/")[1] for name in names] == ["mine"]


def test_a_session_that_ends_in_the_middle_of_a_create_is_told(
    page: Page, cluster: Cluster, portal: str
) -> None:
    page.goto(f"{portal}/")
    page.locator("#name").fill("late")
    cluster.kubectl(
        *("delete", "secrets", "-n", "gpu-portal"),
        *("-l", "platform.acme.io/portal-session"),
    )
    expect(page.get_by_text("You are signed out.")).to_be_visible()
    expect(page.get_by_role("link", name="Sign in")).to_be_visible()
    names = cluster.kubectl("get", CLAIMS, "-A", "-o", "name").split()
    assert [name.split("/")[1] for name in names] == ["mine"]
