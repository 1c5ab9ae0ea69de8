"""The health of resources from clusters, with each form of the configuration."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from engine import Health, assess

CASES = Path(__file__).parent / "cases"


def cases() -> list[Any]:
    return [
        pytest.param(case, id=case["breaks"])
        for path in sorted(CASES.glob("*.yaml"))
        for case in yaml.safe_load(path.read_text())
    ]


@pytest.mark.parametrize("case", cases())
def test_health(case: dict[str, Any], form: Path) -> None:
    expected = case["health"] and Health(case["health"], case["message"])
    assert assess(form, case["resource"], case.get("zone", "UTC")) == expected
