"""Desired state: the function's own part, and the part of earlier steps."""

import pytest
from crossplane.function.proto.v1.run_function_pb2 import (
    READY_TRUE,
    RunFunctionRequest,
    RunFunctionResponse,
)
from google.protobuf.struct_pb2 import Struct

from crossplane_side import cases
from crossplane_side.calls import Answers, Function
from crossplane_side.pipeline import is_fatal

every_case = pytest.mark.parametrize("case", cases.NAMES)

EARLIER = "conformance-earlier-step"
# The function itself names these resources, because pods, SSH clients and recreated
# claims find nodes, hosts, homes and namespaces by their names.
KNOWN_BY_NAME = ("cluster-", "user-", "workspace-connection", "workspace-record")


def with_an_earlier_step(case: str) -> RunFunctionRequest:
    """The case's request after an earlier step, which fills all of desired state."""
    request = cases.request(case)
    resource = request.desired.resources[EARLIER]
    resource.resource.update(
        {
            "apiVersion": "example.org/v1",
            "kind": "Example",
            "metadata": {"annotations": {"": "empty key"}, "generateName": "a-"},
            "spec": {"number": 1.5, "list": [None, True, {}, []], "text": "ä\n"},
            "status": {"not": "ours to judge"},
        }
    )
    resource.ready = READY_TRUE
    resource.connection_details["k"] = b"\x00\xff"
    status = request.desired.composite.resource.get_or_create_struct("status")
    status.update({EARLIER: {"deep": [1, 2, 3]}})
    request.desired.composite.connection_details[EARLIER] = b"v"
    request.context.update({EARLIER: {"from": "an earlier step"}})
    return request


@every_case
def test_what_earlier_steps_left_is_passed_through(
    case: str, function: Function
) -> None:
    request = with_an_earlier_step(case)
    response = function.run(request)
    before, after = request.desired, response.desired
    assert after.resources[EARLIER] == before.resources[EARLIER]
    for name in before.resources:
        assert name in after.resources
    details = after.composite.connection_details
    assert details[EARLIER] == before.composite.connection_details[EARLIER]
    status = after.composite.resource["status"]
    assert status[EARLIER] == before.composite.resource["status"][EARLIER]
    for key, value in request.context.fields.items():
        assert response.context.fields[key] == value


@pytest.mark.parametrize(
    "case", [name for name in cases.NAMES if cases.has_input(name)]
)
def test_a_refusal_changes_nothing_that_earlier_steps_desire(
    case: str, function: Function
) -> None:
    request = with_an_earlier_step(case)
    request.ClearField("input")
    response = function.run(request)
    if is_fatal(response):
        assert response.desired == request.desired
    for name, earlier in request.desired.resources.items():
        assert response.desired.resources[name] == earlier
    assert response.context == request.context


@every_case
def test_of_the_xr_only_status_is_desired(case: str, answers: Answers) -> None:
    response = answers.of(case)
    assert set(_fields(response.desired.composite.resource)) <= {"status"}


@every_case
def test_no_status_of_composed_resources_is_desired(
    case: str, answers: Answers
) -> None:
    for name, resource in _composed(case, answers.of(case)).items():
        fields = _fields(resource)
        assert "status" not in fields, name
        assert {"apiVersion", "kind"} <= set(fields), name


@every_case
def test_crossplane_names_the_composed_resources(case: str, answers: Answers) -> None:
    request = cases.request(case)
    for name, resource in _composed(case, answers.of(case)).items():
        if "metadata" not in resource.fields or name.startswith(KNOWN_BY_NAME):
            continue
        metadata = resource["metadata"].fields
        if "name" in metadata:
            # Crossplane has already named the observed resource.
            observed = request.observed.resources[name].resource["metadata"]
            assert metadata["name"].string_value == observed["name"], name


def _composed(case: str, response: RunFunctionResponse) -> dict[str, Struct]:
    """The desired resources of the function itself, by composition resource name."""
    earlier = cases.request(case).desired.resources
    composed = response.desired.resources.items()
    return {name: r.resource for name, r in composed if name not in earlier}


def _fields(resource: Struct) -> list[str]:
    return list(resource.fields)
