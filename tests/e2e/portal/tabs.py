"""Open pages of alice, and what they show."""

from playwright.sync_api import Page, expect

from environment.cluster import Cluster
from environment.platform import claim

# How long a page may take to be right again.
RIGHT_AGAIN = 45_000


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
