"""The function answers a wrong request with a warning, and a request without a composite
that it knows with a fatal result. A gRPC error would tell Crossplane that the function is
broken."""

from collections.abc import Callable
from typing import Any

import grpc
import pytest
from crossplane.function.proto.v1.run_function_pb2 import (
    SEVERITY_FATAL,
    SEVERITY_WARNING,
    RunFunctionRequest,
    RunFunctionResponse,
)

from crossplane_side import cases
from crossplane_side.calls import Function
from crossplane_side.pipeline import is_fatal

INPUT = {
    "unknown-field": ({"nonsense": 1}, "nonsense"),
    "unknown-inner-field": ({"instance": {"nonsense": 1}}, "nonsense"),
    "text-for-number": ({"sshMaxAddresses": "many"}, "sshMaxAddresses"),
    "no-duration": ({"refreshInterval": "soon"}, "refreshInterval"),
    "number-for-text": ({"behaviourVersion": 1}, "behaviourVersion"),
    "object-for-list": ({"allowedInstanceTypes": {}}, "allowedInstanceTypes"),
    "list-for-object": ({"instance": []}, "instance"),
    "fraction-for-integer": ({"sshMaxAddresses": 0.5}, "sshMaxAddresses"),
    "other-kind": ({"kind": "Resources"}, "kind"),
    "unknown-version": ({"behaviourVersion": "v999"}, "behaviourVersion"),
    "nothing-in-it": ({key: None for key in ["kind", "catalogue"]}, "catalogue"),
}


@pytest.mark.parametrize("change,named", INPUT.values(), ids=INPUT)
def test_an_unusable_input_is_named(
    change: dict[str, Any], named: str, function: Function
) -> None:
    response = function.run(cases.request(cases.PLAIN, {"input": change}))
    assert named in _warning(response)


def _without_input(request: RunFunctionRequest) -> None:
    request.ClearField("input")


def _empty_input(request: RunFunctionRequest) -> None:
    request.input.Clear()


def _no_number(request: RunFunctionRequest) -> None:
    request.input["cluster"] = {"defaultFlavor": "t4", "maxNodes": float("nan")}


def _without_state(request: RunFunctionRequest) -> None:
    request.ClearField("observed")


def _without_xr(request: RunFunctionRequest) -> None:
    request.observed.ClearField("composite")


def _empty_xr(request: RunFunctionRequest) -> None:
    request.observed.composite.resource.Clear()


def _xr_of_other_types(request: RunFunctionRequest) -> None:
    request.observed.composite.resource.update(
        {"metadata": "text", "spec": [1], "status": True}
    )


def _parameters_of_other_types(request: RunFunctionRequest) -> None:
    spec = request.observed.composite.resource["spec"]
    spec["parameters"] = [None]


OF_A_WORKSPACE = [
    _without_input,
    _empty_input,
    _no_number,
    _xr_of_other_types,
    _parameters_of_other_types,
]
OF_NOTHING = [_without_state, _without_xr, _empty_xr]


@pytest.mark.parametrize("change", OF_A_WORKSPACE, ids=lambda c: c.__name__.strip("_"))
def test_an_unusable_workspace_is_a_warning(
    change: Callable[[RunFunctionRequest], None], function: Function
) -> None:
    request = cases.request(cases.PLAIN)
    change(request)
    response = function.run(request)
    assert _warning(response)
    assert response.meta.tag == request.meta.tag


@pytest.mark.parametrize("change", OF_NOTHING, ids=lambda c: c.__name__.strip("_"))
def test_a_request_without_a_composite_is_a_fatal_result(
    change: Callable[[RunFunctionRequest], None], function: Function
) -> None:
    request = cases.request(cases.PLAIN)
    change(request)
    response = function.run(request)
    assert _fatal(response)
    assert response.meta.tag == request.meta.tag


def test_an_empty_request_is_a_fatal_result(function: Function) -> None:
    assert _fatal(RunFunctionResponse.FromString(function.raw(b"")))


@pytest.mark.parametrize("levels", [60, 1000, 300_000])
def test_a_request_that_nests_too_deep_is_a_fatal_result(
    levels: int, function: Function
) -> None:
    """The function must answer at every depth. A gRPC library's own limit would be a
    gRPC error, and a stack overflow would end the process."""
    request = RunFunctionRequest()
    request.meta.tag = "deep"
    # RunFunctionRequest.context is field 5.
    deep = request.SerializeToString() + _field(5, _nested(levels))
    response = RunFunctionResponse.FromString(function.raw(deep))
    assert response.meta.tag == "deep"
    assert "nests deeper" in _fatal(response)
    assert function.run(cases.request(cases.PLAIN)).desired.resources


def test_what_is_no_request_at_all_ends_nothing(function: Function) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        function.raw(b"\xff\xff\xff")
    assert refused.value.code() == grpc.StatusCode.INTERNAL
    assert function.run(cases.request(cases.PLAIN)).desired.resources


def _fatal(response: RunFunctionResponse) -> str:
    assert is_fatal(response)
    (result,) = response.results
    assert result.severity == SEVERITY_FATAL
    return str(result.message)


def _warning(response: RunFunctionResponse) -> str:
    """The message of a refusal that keeps what is observed."""
    assert not is_fatal(response)
    (result,) = response.results
    assert result.severity == SEVERITY_WARNING
    return str(result.message)


def _nested(levels: int) -> bytes:
    """A Struct with lists in lists, encoded from the inside out. protobuf's own classes
    refuse such depths."""
    heads: list[bytes] = []
    length = 0

    def wrap(field: int) -> None:
        nonlocal length
        head = bytes([field << 3 | 2]) + _varint(length)
        heads.append(head)
        length += len(head)

    for _ in range(levels):
        wrap(1)  # ListValue.values
        wrap(6)  # Value.list_value
    wrap(2)  # the value of Struct.fields' entry
    wrap(1)  # Struct.fields
    return b"".join(reversed(heads))


def _field(number: int, message: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(message)) + message


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])
