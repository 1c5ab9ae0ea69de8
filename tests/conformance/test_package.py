"""The package's metadata, which Crossplane reads before it runs the function."""

from pathlib import Path
from typing import Any

import pytest
import yaml

PACKAGE = Path(__file__).parents[2] / "package/function"


@pytest.fixture
def metadata() -> Any:
    return yaml.safe_load((PACKAGE / "crossplane.yaml").read_text())


def test_its_name_begins_with_function(metadata: Any) -> None:
    assert metadata["kind"] == "Function"
    assert metadata["metadata"]["name"].startswith("function-")


def test_it_says_that_it_composes(metadata: Any) -> None:
    assert "composition" in metadata["spec"]["capabilities"]
