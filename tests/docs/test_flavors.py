"""The flavors of the examples fit the images that this project builds. Pods whose image has
another release than their flavor promises do not start."""

import re
from typing import Any

import pytest
import yaml

from documents.markdown import ROOT

WHEELS = ROOT / "images/workspace/wheels"
FILES = sorted(ROOT.glob("examples/**/flavors.yaml"))


def flavors() -> list[Any]:
    assert FILES
    found = [
        pytest.param(
            flavor, id=f"{file.relative_to(ROOT)}:{flavor['metadata']['name']}"
        )
        for file in FILES
        for flavor in yaml.safe_load_all(file.read_text())
        if flavor and flavor["kind"] == "WorkspaceFlavor"
    ]
    assert found
    return found


@pytest.mark.parametrize("flavor", flavors())
def test_a_flavor_promises_what_is_in_its_image(flavor: dict[str, Any]) -> None:
    spec = flavor["spec"]
    variant = re.search(r"workspace:(\w+)", spec["image"])
    assert variant, f"{spec['image']}: name the variant of images/workspace as its tag"
    pinned = (WHEELS / f"{variant[1]}.txt").read_text()
    opencv = re.search(r"^opencv-python-headless==(\S+)", pinned, re.M)
    assert opencv and opencv[1].startswith(f"{spec['opencvVersion']}.")
    torch = re.search(r"^torch==(\S+)", pinned, re.M)
    # The image `cpu` has the PyTorch of its distribution, which has no wheel.
    if torch:
        assert torch[1] == spec["pytorchVersion"]
    else:
        assert variant[1] == "cpu"
