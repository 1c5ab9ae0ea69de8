"""Crossplane's handling of a function's responses. It has the order of Crossplane's
code: internal/xfn/required_resources.go and
internal/controller/apiextensions/composite/composition_functions.go."""

from crossplane.function.proto.v1.run_function_pb2 import (
    SEVERITY_FATAL,
    STATUS_CONDITION_FALSE,
    STATUS_CONDITION_TRUE,
    Requirements,
    Resource,
    Resources,
    ResourceSelector,
    RunFunctionRequest,
    RunFunctionResponse,
)
from google.protobuf.struct_pb2 import ListValue, Struct

from crossplane_side.calls import Function

# Crossplane calls it MaxRequirementsIterations.
MOST_ROUNDS = 5


class Unstable(Exception):
    """The function's requirements differ in every round."""


def required_resources(request: RunFunctionRequest) -> list[Resource]:
    """The required resources in a request. They stand for the cluster's resources."""
    return [r for group in request.required_resources.values() for r in group.items]


def is_fatal(response: RunFunctionResponse) -> bool:
    return any(r.severity == SEVERITY_FATAL for r in response.results)


def run(
    function: Function, request: RunFunctionRequest, cluster: list[Resource]
) -> RunFunctionResponse:
    """Calls the function again until its requirements no longer change."""
    bootstrap, request = request, _copy(request)
    asked: Requirements | None = None
    for call in range(MOST_ROUNDS + 1):
        response = function.run(request)
        if is_fatal(response) or response.requirements == asked:
            return response
        asked = response.requirements
        following = _copy(request)
        following.ClearField("required_resources")
        following.ClearField("extra_resources")
        for name, found in bootstrap.required_resources.items():
            following.required_resources[name].CopyFrom(found)
        for name, selector in asked.resources.items():
            following.required_resources[name].CopyFrom(_select(selector, cluster))
        for name, selector in asked.extra_resources.items():
            following.extra_resources[name].CopyFrom(_select(selector, cluster))
        if call == 0 and following == request:
            return response
        following.context.CopyFrom(response.context)
        request = following
    raise Unstable(str(asked))


def applied(
    request: RunFunctionRequest, response: RunFunctionResponse
) -> RunFunctionRequest:
    """The next request. Its observed composite has the desired status, and the
    response's conditions."""
    following = _copy(request)
    xr = following.observed.composite.resource
    conditions = {c["type"]: c for c in _conditions(xr)}
    if not is_fatal(response):
        status = response.desired.composite.resource.fields["status"]
        xr.fields["status"].CopyFrom(status)
    for condition in response.conditions:
        kept = conditions.setdefault(condition.type, Struct())
        status_is = {STATUS_CONDITION_TRUE: "True", STATUS_CONDITION_FALSE: "False"}
        kept.update(
            {
                "type": condition.type,
                "status": status_is.get(condition.status, "Unknown"),
                "reason": condition.reason,
                "message": condition.message,
                "lastTransitionTime": "2026-11-20T10:00:05Z",
            }
        )
    if conditions:
        written = ListValue()
        for kept in conditions.values():
            written.values.add().struct_value.CopyFrom(kept)
        status_of_xr = xr.fields["status"].struct_value
        status_of_xr.fields["conditions"].list_value.CopyFrom(written)
    return following


def _conditions(xr: Struct) -> list[Struct]:
    if "status" not in xr.fields:
        return []
    conditions = xr.fields["status"].struct_value.fields.get("conditions")
    return [v.struct_value for v in conditions.list_value.values] if conditions else []


def _select(selector: ResourceSelector, cluster: list[Resource]) -> Resources:
    return Resources(items=[r for r in cluster if _matches(selector, r.resource)])


def _matches(selector: ResourceSelector, resource: Struct) -> bool:
    if (resource["apiVersion"], resource["kind"]) != (
        selector.api_version,
        selector.kind,
    ):
        return False
    metadata = resource["metadata"]
    if selector.HasField("namespace"):
        if metadata.fields["namespace"].string_value != selector.namespace:
            return False
    if selector.WhichOneof("match") == "match_name":
        return bool(metadata["name"] == selector.match_name)
    labels = metadata.fields["labels"].struct_value.fields
    wanted = selector.match_labels.labels.items()
    return all(key in labels and labels[key].string_value == v for key, v in wanted)


def _copy(request: RunFunctionRequest) -> RunFunctionRequest:
    copy = RunFunctionRequest()
    copy.CopyFrom(request)
    return copy
