"""Open pages are right again after the API server was restarted, and nobody loads them again.

The package manager then writes the packages' own Compositions again. So this test comes after those
that need the suite's policy of workspaces."""

import subprocess

from playwright.sync_api import Page

from environment.cluster import Cluster
from portal.installation import SignIn
from portal.tabs import make, right


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
