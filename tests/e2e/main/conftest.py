"""What the tests of rendering share."""

from collections.abc import Iterator

import pytest

from environment.rendering import serving


@pytest.fixture(scope="session")
def function() -> Iterator[str]:
    """The function, outside the cluster; answers its address."""
    with serving() as address:
        yield address
