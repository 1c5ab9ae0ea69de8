"""Variants of committed files: Compositions with another policy, other flavors."""

from pathlib import Path
from typing import Any

import yaml

from .cluster import Cluster
from .objects import Object

ROOT = Path(__file__).parents[3]


def composition(
    cluster: Cluster, name: str, policy: Object, of: str = "gpudevworkspaces"
) -> str:
    """Applies a committed Composition with another name and a changed policy."""
    document: Object = yaml.safe_load((ROOT / f"compositions/{of}.yaml").read_text())
    document["metadata"] = {"name": name}
    (step,) = document["spec"]["pipeline"]
    step["input"] = _merged(step["input"], policy)
    for required in step.get("requirements", {}).get("requiredResources", []):
        if required["requirementName"] == "catalogue":
            required["name"] = step["input"]["catalogue"]["name"]
    cluster.apply(document)
    return name


def catalogue(cluster: Cluster, name: str, data: Object) -> str:
    """Applies the examples' catalogue with another name and changed data."""
    text = (ROOT / "examples/platform/catalogue.yaml").read_text()
    document: Object = yaml.safe_load(text)
    document["metadata"] = {"name": name}
    document["data"] = _merged(document["data"], data)
    cluster.apply(document)
    return name


def flavor(cluster: Cluster, image: str, name: str, **spec: Any) -> str:
    """Applies the examples' flavor `cpu-small` with another name and a changed spec."""
    text = (ROOT / "examples/platform/flavors.yaml").read_text()
    (document,) = [
        one
        for one in yaml.safe_load_all(text)
        if one["metadata"]["name"] == "cpu-small"
    ]
    document["metadata"] = {"name": name}
    test_size = {"image": image, "cpu": "100m", "shmSize": "64Mi"}
    document["spec"] = _merged(document["spec"], {**test_size, **spec})
    cluster.apply(document)
    return name


def _merged(document: Object, change: Object) -> Object:
    """The document with a JSON merge patch: `None` removes a field."""
    merged = dict(document)
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
            continue
        is_object = isinstance(value, dict)
        merged[key] = _merged(document.get(key, {}), value) if is_object else value
    return merged
