"""The requests of the first dashboard, from a page with axios as it comes."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, Route

from environment.cluster import Cluster
from environment.waiting import until
from page import Person, signs_in
from portal.installation import ROOT

AXIOS = ROOT / "portal/web/node_modules/axios/dist/axios.min.js"
DASHBOARD = '<!doctype html><html lang=en><title>Dashboard</title><script src="/axios.js"></script></html>'
ASK = """([method, path, body]) =>
    axios.request({method, url: path, data: body})
        .catch(error => error.response)
        .then(({status, data}) => [status, data])"""


@pytest.fixture
def dashboard(person: Person) -> Iterator[Page]:
    """A page with axios, at the portal's origin and with the portal's policy for pages."""
    signs_in(person.opens(), "alice")

    def served(route: Route) -> None:
        policy = route.fetch().headers["content-security-policy"]
        headers = {
            "Content-Type": "text/html",
            "Content-Security-Policy": policy,
        }
        route.fulfill(body=DASHBOARD, headers=headers)

    person.context.route("**/dashboard", served)
    person.context.route("**/axios.js", lambda route: route.fulfill(path=AXIOS))
    yield person.opens("/dashboard")


def asks(page: Page, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    status, data = page.evaluate(ASK, [method, f"/api/workspaces{path}", body])
    return status, data


def test_the_first_dashboard_creates_lists_and_deletes(
    dashboard: Page, cluster: Cluster
) -> None:
    asked = {
        "owner": "alice@acme.io",
        "instanceType": "g4dn.xlarge",
        "opencvVersion": "4.8.0",
    }
    status, created = asks(dashboard, "POST", "", asked)
    assert status == 202, created
    name = created["metadata"]["name"]

    def ready() -> Any:
        _, (row,) = asks(dashboard, "GET", "")
        return row if row["status"]["phase"] == "Ready" else None

    row = until("the workspace to be Ready", ready, 300)
    claim = cluster.get("gpudevworkspaceclaims.platform.acme.io", name, "dev-alice")
    assert claim is not None
    # The definition of a claim has a default.
    placed = {"placement": "EC2"}
    assert claim["spec"]["parameters"] == {**asked, **placed, "owner": "alice"}
    assert row == {
        "name": name,
        "owner": "alice",
        "instanceType": "g4dn.xlarge",
        "creationTimestamp": claim["metadata"]["creationTimestamp"],
        "status": {
            "phase": "Ready",
            "instanceId": claim["status"]["instanceId"],
            "publicIp": claim["status"]["publicIp"],
            "connection": claim["status"]["ssh"],
        },
    }
    status, refused = asks(dashboard, "POST", "", {**asked, "owner": "bob@acme.io"})
    assert status == 400 and "owner" in refused["error"]
    assert asks(dashboard, "DELETE", f"/{name}")[0] == 204
    until("the workspace to be gone", lambda: asks(dashboard, "GET", "")[1] == [], 120)
    status, gone = asks(dashboard, "DELETE", f"/{name}")
    assert status == 404 and gone.keys() == {"error"}


def test_a_page_without_the_token_of_the_session_changes_nothing(
    dashboard: Page,
) -> None:
    """The dashboard may write only since axios sends the header by itself."""
    dashboard.evaluate("axios.defaults.xsrfHeaderName = 'X-Other'")
    status, refused = asks(dashboard, "POST", "", {"owner": "alice@acme.io"})
    assert status == 403 and "XSRF" in refused["error"]
