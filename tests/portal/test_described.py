"""The API answers as its description says, whatever is sent."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from itertools import cycle

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from cluster import ROOT
from conftest import signed_in
from people import Browser
from stage import Places

# Thousands of requests.
pytestmark = pytest.mark.thorough
# In all; `CALLS=100 make portal THOROUGH=1` is enough while something else is written.
CALLS = int(os.environ.get("CALLS", "2000"))
SEED = int(os.environ.get("SEED", "29"))
# A session may write twice a second, so many people ask at once.
SESSIONS = 60
# Operations that take nothing are called once.
WITHOUT_INPUT = 5
DESCRIPTION = ROOT / "portal/openapi.json"
CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]


@pytest.fixture(scope="module")
def people(portal: str, places: Places) -> Iterator[Iterator[Browser]]:
    yield cycle([signed_in(portal, places, "alice") for _ in range(SESSIONS)])


def test_the_description_is_served(portal: str, alice: Browser) -> None:
    served = alice.get("/api/v1/openapi.json")
    assert served.status_code == 200
    assert served.json() == json.loads(DESCRIPTION.read_text())


def test_nothing_that_is_sent_makes_the_portal_fail(
    people: Iterator[Browser], portal: str
) -> None:
    print(f"SEED={SEED}")
    described = schemathesis.openapi.from_path(DESCRIPTION)
    found = [result.ok() for result in described.get_all_operations()]
    # The stream does not end.
    operations = [one for one in found if one.path != "/api/v1/watch"]
    assert len(operations) > 15
    # A path takes any text, so only a body can be wrong.
    with_body = [one for one in operations if "requestBody" in one.definition.raw]
    kinds = len(operations) + len(with_body)
    codes: Counter[int] = Counter()
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            if mode is GenerationMode.NEGATIVE and operation not in with_body:
                continue

            @seed(SEED)
            @settings(
                max_examples=CALLS // (kinds - WITHOUT_INPUT) + 1,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def call(case: Case) -> None:
                browser = next(people)
                answer = case.call(
                    base_url=portal,
                    session=browser.http,
                    headers=browser.own(),
                    verify=str(browser.authority),
                )
                codes[answer.status_code] += 1
                case.validate_response(answer, checks=CHECKS)

            call()
    print(sorted(codes.items()))
    assert sum(codes.values()) >= CALLS
    # What is described is reached: not everything is refused before.
    assert codes[200] > CALLS // 20
    assert codes[429] < CALLS // 10
