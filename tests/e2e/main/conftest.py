"""The fixture that the tests of rendering share."""

from collections.abc import Iterator

import pytest

from environment.rendering import serving


@pytest.fixture(scope="session")
def function() -> Iterator[str]:
    """Runs the function outside the cluster, and yields its address."""
    with serving() as address:
        yield address
