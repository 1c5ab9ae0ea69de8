"""The suite begins without the platform's limits: the documentation's commands apply them."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def limits() -> None:
    """Changes nothing."""
