"""Reads the requests of function/tests/cases in the same way as
function/tests/case/mod.rs."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from crossplane.function.proto.v1.run_function_pb2 import RunFunctionRequest
from google.protobuf.json_format import ParseDict

FOLDER = Path(__file__).parents[3] / "function/tests/cases"
NAMES = sorted(case.name for case in FOLDER.iterdir())

# The case with the first request of a workspace, without any error.
PLAIN = "new-workspace"


def has_input(name: str) -> bool:
    """Whether the case's pipeline step has an input. A step for flavors needs none."""
    return "input" in _written(name)


def request(name: str, change: Any = None) -> RunFunctionRequest:
    """A case's request, changed by a merge patch."""
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
    """The target after a JSON merge patch (RFC 7386). It does not change the target."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, change in patch.items():
        if change is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), change)
    return merged
