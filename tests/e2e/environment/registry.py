"""The cluster's registry. `make e2e` pushes images and packages before a suite."""

import os
import subprocess


def address() -> str:
    return os.environ["GPU_WORKSPACES_REGISTRY"]


def tags(repository: str, suite: str) -> list[str]:
    """A repository's tags, as crane lists them. Fails if it has none."""
    reference = f"{address()}/{repository}"
    listed = subprocess.run(
        ["crane", "ls", reference], capture_output=True, text=True, check=False
    )
    found = listed.stdout.split()
    assert found, f"nothing in {reference}: run the suite by `make e2e SUITE={suite}`"
    return found


def newest(repository: str, suite: str, prefix: str = "") -> str:
    """The reference of the last listed tag with this prefix."""
    found = [tag for tag in tags(repository, suite) if tag.startswith(prefix)]
    assert found, f"no {prefix}… in {repository}: run `make e2e SUITE={suite}`"
    return f"{address()}/{repository}:{found[-1]}"
