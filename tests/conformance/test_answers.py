"""Responses: tag, time to live, results and conditions. They are deterministic."""

import re
from collections.abc import Iterator

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as v1
from crossplane.function.proto.v1beta1 import run_function_pb2 as v1beta1

from crossplane_side import cases, pipeline
from crossplane_side.calls import V1, V1BETA1, Answers, Function
from crossplane_side.process import running

every_case = pytest.mark.parametrize("case", cases.NAMES)

REPEATS = 4
PASCAL_CASE = re.compile(r"[A-Z][A-Za-z0-9]*")
# The conditions that Crossplane sets itself.
SYSTEM_CONDITIONS = {"Ready", "Synced", "Healthy", "Responsive"}


@every_case
def test_the_tag_is_echoed_and_decides_nothing(case: str, function: Function) -> None:
    request = cases.request(case)
    answers = []
    for tag in ["", "ä" * 1000]:
        request.meta.tag = tag
        response = function.run(request)
        assert response.meta.tag == tag
        response.meta.tag = ""
        answers.append(response)
    assert answers[0] == answers[1]


@every_case
def test_every_answer_says_how_long_it_holds(case: str, answers: Answers) -> None:
    assert answers.of(case).meta.ttl.ToTimedelta().total_seconds() > 0


@pytest.fixture(scope="module")
def restarted() -> Iterator[Function]:
    """A second process of the function."""
    with running("--insecure") as server, server.plain() as channel:
        yield Function(channel)


@every_case
def test_the_same_request_gives_the_same_bytes(
    case: str, function: Function, restarted: Function
) -> None:
    request = cases.request(case).SerializeToString()
    answers = {function.raw(request) for _ in range(REPEATS)}
    assert answers == {restarted.raw(request)}


@every_case
def test_both_versions_answer_alike(case: str, function: Function) -> None:
    request = cases.request(case).SerializeToString()
    # The request is a message of the older version, which has the same fields.
    older = v1beta1.RunFunctionRequest.FromString(request)
    answer = function.raw(older.SerializeToString(), V1BETA1)
    assert answer == function.raw(request, V1)
    assert v1beta1.RunFunctionResponse.FromString(answer).meta.tag == older.meta.tag


@every_case
def test_requirements_become_stable(case: str, function: Function) -> None:
    own = pipeline.required_resources(cases.request(case))
    request = cases.request(case)
    request.ClearField("required_resources")
    for cluster in [[], own]:
        pipeline.run(function, request, cluster)


@every_case
def test_nothing_is_reported_on_every_call(case: str, function: Function) -> None:
    """In the second call, the observed composite has the first call's response."""
    request = cases.request(case)
    cluster = pipeline.required_resources(request)
    first = pipeline.run(function, request, cluster)
    following = pipeline.applied(request, first)
    second = pipeline.run(function, following, cluster)
    repeated = [r for r in second.results if r.severity != v1.SEVERITY_FATAL]
    assert not repeated
    # From the second call on, the response is constant.
    third = pipeline.run(function, pipeline.applied(following, second), cluster)
    assert third == second


@every_case
def test_a_fatal_result_says_why_and_stands_alone(case: str, answers: Answers) -> None:
    response = answers.of(case)
    fatal = [r for r in response.results if r.severity == v1.SEVERITY_FATAL]
    assert len(fatal) <= 1
    for result in fatal:
        assert result.message and PASCAL_CASE.fullmatch(result.reason)
        assert list(response.results) == fatal


@every_case
def test_conditions_are_the_functions_own(case: str, answers: Answers) -> None:
    conditions = answers.of(case).conditions
    types = [condition.type for condition in conditions]
    assert len(set(types)) == len(types)
    assert not SYSTEM_CONDITIONS & set(types)
    for condition in conditions:
        assert PASCAL_CASE.fullmatch(condition.type)
        assert PASCAL_CASE.fullmatch(condition.reason)
        assert condition.status != v1.STATUS_CONDITION_UNSPECIFIED
