"""Crossplane's own engine renders every example as its golden."""

import os
import time
from pathlib import Path

import pytest
import yaml

from environment.rendering import EXAMPLES, render

GOLDENS = Path(__file__).parent / "goldens"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_renders_as_its_golden_says(
    example: Path, function: str, tmp_path: Path
) -> None:
    rendered = _render(example, function, tmp_path)
    golden = GOLDENS / example.name
    if os.environ.get("UPDATE_GOLDENS"):
        GOLDENS.mkdir(exist_ok=True)
        golden.write_text(rendered)
    assert _certain(rendered) == _certain(golden.read_text())


def _certain(rendered: str) -> list[str]:
    """The documents without the results that Crossplane writes in random order."""
    return [one for one in rendered.split("---\n") if "not yet ready" not in one]


def test_every_golden_has_an_example() -> None:
    assert [path.name for path in EXAMPLES] == sorted(
        path.name for path in GOLDENS.glob("*.yaml")
    )


@pytest.mark.alone
def test_rendering_the_largest_example_takes_a_moment_only(
    function: str, tmp_path: Path
) -> None:
    began = time.monotonic()
    _render(EXAMPLES[-1], function, tmp_path)
    assert time.monotonic() - began < 5


def _render(example: Path, address: str, folder: Path) -> str:
    return render(yaml.safe_load(example.read_text()), address, folder)
