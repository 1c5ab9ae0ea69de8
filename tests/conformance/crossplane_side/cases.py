"""The requests of function/tests/cases, as function/tests/case/mod.rs reads them."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from crossplane.function.proto.v1.run_function_pb2 import RunFunctionRequest
from google.protobuf.json_format import ParseDict

FOLDER = Path(__file__).parents[3] / "function/tests/cases"
NAMES = sorted(case.name for case in FOLDER.iterdir())

# What the first request of a workspace looks like, with everything in place.
PLAIN = "new-workspace"


def has_input(name: str) -> bool:
    """Whether the case's step has an input: one for flavors needs none."""
    return "input" in _written(name)


def request(name: str, change: Any = None) -> RunFunctionRequest:
    """A case's request with a further merge patch."""
    request = RunFunctionRequest()
    ParseDict(_merged(_written(name), change or {}), request)
    return request


@cache
def _written(name: str) -> Any:
    written = yaml.load((FOLDER / name / "request.yaml").read_text(), yaml.CSafeLoader)
    if "extends" not in written:
        return written
    return _merged(_written(written["extends"]), written["change"])


def _merged(target: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7386). The target stays as it is."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, change in patch.items():
        if change is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), change)
    return merged
