"""What a workspace would get is told before it exists, by the policy that decides later."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

import crossplane
from cluster import CLAIMS, Cluster
from people import Browser
from processes import until

Body = dict[str, Any]
# The policy of the examples lets nobody in who names no network.
OFFICE = {"allowedCidrs": ["203.0.113.0/24"]}


@pytest.fixture(autouse=True)
def platform(cluster: Cluster) -> Iterator[None]:
    """Each test ends with the platform of the examples."""
    yield
    crossplane.reset(cluster)
    crossplane.budget(cluster, "alice", None)


def preview(browser: Browser, parameters: Body, name: str = "vision") -> Body:
    answer = browser.writes(
        "POST", "/api/v1/preview", {"name": name, "parameters": parameters}
    )
    assert answer.status_code == 200, answer.text
    told: Body = answer.json()
    return told


def pointers(told: Body) -> list[str]:
    return [error["pointer"] for error in told["errors"]]


def policy(cluster: Cluster, **changes: object) -> None:
    """Changes the policy of workspaces."""
    composition = crossplane.composition("gpudevworkspaces")
    composition["spec"]["pipeline"][0]["input"].update(changes)
    cluster.apply(composition)


def claims(cluster: Cluster) -> list[Body]:
    found: list[Body] = json.loads(cluster.kubectl("get", CLAIMS, "-A", "-o", "json"))[
        "items"
    ]
    return found


def test_machine_price_and_stop_are_told_and_nothing_is_made(
    alice: Browser, cluster: Cluster
) -> None:
    told = preview(alice, {"instanceType": "g4dn.xlarge", "ssh": OFFICE})
    assert told["errors"] == [] and "obstacle" not in told, told
    assert told["machines"][0] == {
        "name": "g4dn.xlarge",
        "count": 1,
        "hourlyUsd": 0.526,
    }
    assert told["region"] == "us-east-1"
    assert told["limits"]["maxLifetime"]
    assert "SpotPool" in [made["kind"] for made in told["resources"]]
    assert claims(cluster) == []


def test_why_a_workspace_would_not_start_is_told(alice: Browser) -> None:
    told = preview(alice, {"instanceType": "g4dn.xlarge"})
    assert told["machines"] == [] and told["obstacle"]["reason"] == "NoNetworks"
    assert "spec.parameters.ssh.allowedCidrs" in told["obstacle"]["message"]


def test_a_budget_that_is_too_small_is_told_before_anything_exists(
    alice: Browser, cluster: Cluster
) -> None:
    crossplane.counts_money(cluster)

    def told(usd: float) -> Body:
        crossplane.budget(cluster, "alice", usd)
        wish = {"instanceType": "g4dn.xlarge", "ssh": OFFICE}
        answer: Body = {}

        def is_known() -> bool:
            nonlocal answer
            asked = {"name": "vision", "parameters": wish}
            told = alice.writes("POST", "/api/v1/preview", asked)
            answer = told.json()
            return told.ok and bool(answer.get("budget", {}).get("monthlyUsd") == usd)

        until("the budget to be known", is_known)
        return answer

    little = told(1)
    assert little["obstacle"]["reason"] == "BudgetExceeded", little
    assert not little["budget"]["isGranted"] and little["hourlyUsd"] == 0.526
    (marked,) = little["warnings"]
    assert marked["pointer"] == "/parameters/instanceType"
    assert marked["detail"] == little["obstacle"]["message"]
    enough = told(1000)
    assert "obstacle" not in enough and enough["budget"]["isGranted"], enough
    assert enough["warnings"] == []
    # 72 hours at most, as the policy of the examples says.
    assert enough["runUsd"] == pytest.approx(72 * 0.526)


def test_each_refused_field_is_marked_before_anything_exists(
    alice: Browser, cluster: Cluster
) -> None:
    wrong: dict[str, Body] = {
        "/parameters/instanceType": {"instanceType": "p5.48xlarge"},
        "/parameters/ssh/allowedCidrs/0": {"ssh": {"allowedCidrs": ["0.0.0.0/0"]}},
        "/parameters/lifecycle/maxLifetime": {"lifecycle": {"maxLifetime": "900d"}},
        "/parameters/home/size": {
            "home": {"size": "600Gi"},
            "capacityType": "OnDemand",
        },
        "/parameters/ssh/publicKeys/0": {"ssh": {"publicKeys": ["no key"]}},
        "/name": {},
    }
    for pointer, parameters in wrong.items():
        name = "no_name" if pointer == "/name" else "vision"
        told = preview(alice, parameters, name)
        assert pointer in pointers(told), (pointer, told)
    assert claims(cluster) == []


def test_a_name_that_is_taken_is_marked(alice: Browser) -> None:
    made = alice.writes("POST", "/api/v1/workspaces", {"name": "vision"})
    assert made.status_code == 201
    assert pointers(preview(alice, {})) == ["/name"]


def test_a_type_and_a_price_appear_without_a_new_portal(
    alice: Browser, cluster: Cluster
) -> None:
    patch = {
        "data": {
            "instanceTypes": {
                "g7.xlarge": {
                    "gpu": "L4",
                    "gpus": 1,
                    "gpuMemory": "24Gi",
                    "vcpus": 4,
                    "memory": "16Gi",
                }
            },
            "prices": {"hourlyUsd": {"us-east-1": {"g7.xlarge": 0.75}}},
        }
    }
    cluster.kubectl(
        *("patch", crossplane.CATALOGUE, "gpu-workspaces", "--type=merge"),
        *("-p", json.dumps(patch)),
    )

    def offered() -> Body | None:
        types = alice.get("/api/v1/catalogue").json()["ec2"]["instanceTypes"]
        return next((one for one in types if one["name"] == "g7.xlarge"), None)

    until("the type to be offered", lambda: offered() is not None)
    new = offered()
    assert new is not None
    assert new["hourlyUsd"] == {"us-east-1": 0.75} and new["gpu"] == "L4"
    assert new["refused"].startswith("allowed are ")
    composition = crossplane.composition("gpudevworkspaces")
    allowed = composition["spec"]["pipeline"][0]["input"]["allowedInstanceTypes"]
    policy(cluster, allowedInstanceTypes=[*allowed, "g7.xlarge"])

    def price() -> float | None:
        body = {
            "name": "vision",
            "parameters": {"instanceType": "g7.xlarge", "ssh": OFFICE},
        }
        answer = alice.writes("POST", "/api/v1/preview", body)
        return answer.json().get("hourlyUsd") if answer.ok else None

    until("the type to be allowed", lambda: price() == 0.75)


def test_a_field_of_a_new_definition_is_in_the_schema(
    alice: Browser, cluster: Cluster
) -> None:
    (definition,) = crossplane.documents(
        crossplane.ROOT / "xrds/gpudevworkspaces.platform.acme.io.yaml"
    )
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    parameters = schema["properties"]["spec"]["properties"]["parameters"]
    parameters["properties"]["colour"] = {"type": "string", "description": "New."}
    cluster.apply(definition)

    def served() -> Body:
        found: Body = alice.get("/api/v1/schemas/workspace").json()["properties"]
        return found

    until("the field to be served", lambda: "colour" in served())
    assert served()["colour"]["description"] == "New."


def test_who_asks_too_often_for_previews_is_told_when_to_ask_again(
    alice: Browser,
) -> None:
    body = {"name": "vision", "parameters": {}}
    answers = [alice.writes("POST", "/api/v1/preview", body) for _ in range(30)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused and int(refused[0].headers["Retry-After"]) >= 1
    # Previews take nothing from writes.
    assert alice.writes("POST", "/api/v1/workspaces", body).status_code == 201


def test_a_change_that_ends_the_machine_is_told_before_it_is_made(
    alice: Browser, cluster: Cluster
) -> None:
    parameters = {"instanceType": "g4dn.xlarge", "ssh": OFFICE, "capacityType": "Spot"}
    made = alice.writes(
        "POST", "/api/v1/workspaces", {"name": "vision", "parameters": parameters}
    )
    assert made.status_code == 201
    crossplane.composes(cluster, "dev-alice", "vision")
    path = "/api/v1/workspaces/dev-alice/vision"

    def change(patch: Body) -> Body:
        answer = alice.writes("POST", f"{path}/preview", patch)
        assert answer.status_code == 200, answer.text
        told: Body = answer.json()
        return told

    until("the composite", lambda: "effect" in change({}))
    ends = change({"lifecycle": {"state": "Stopped"}})
    assert (ends["effect"], ends["isOn"]) == ("Stopped", True), ends
    stays = change({"lifecycle": {"maxLifetime": "8h"}})
    assert stays["effect"] in ("Unchanged", "Changed") and stays["isOn"], stays
    assert stays["limits"]["maxLifetime"] == "8h"
    refused = change({"instanceType": "p5.48xlarge"})
    assert pointers(refused) == ["/parameters/instanceType"], json.dumps(refused)
    now = cluster.get(CLAIMS, "dev-alice", "vision")["spec"]["parameters"]
    assert now["instanceType"] == "g4dn.xlarge" and "maxLifetime" not in str(now)


def test_a_change_of_pods_that_run_is_told_before_it_is_made(
    alice: Browser, cluster: Cluster
) -> None:
    cluster.offer({"placements": "EC2, Cluster"})
    parameters = {"placement": "Cluster", "flavor": "t4"}
    made = alice.writes(
        "POST", "/api/v1/workspaces", {"name": "pods", "parameters": parameters}
    )
    assert made.status_code == 201
    crossplane.composes_pods(cluster, "dev-alice", "pods")
    path = "/api/v1/workspaces/dev-alice/pods/preview"

    def change(patch: Body) -> Body:
        told: Body = alice.writes("POST", path, patch).json()
        return told

    until("the composite", lambda: "effect" in change({}))
    ends = change({"lifecycle": {"state": "Stopped"}})
    assert (ends["effect"], ends["isOn"]) == ("Stopped", True), ends
    same = change({})
    assert (same["effect"], same["isOn"]) == ("Unchanged", True), same
    # kubelet and Kubernetes end no pod for it: it counts from the next start on.
    other = change({"overrides": {"shmSize": "2Gi"}})
    assert (other["effect"], other["isOn"]) == ("Changed", True), other
    # What runs stays if the claim is refused.
    refused = change({"overrides": {"memory": "2Gi"}})
    assert (refused["effect"], refused["isOn"]) == ("Refused", True), refused


def test_a_claim_that_names_the_composite_of_somebody_else_tells_nothing_of_it(
    alice: Browser, bob: Browser, cluster: Cluster
) -> None:
    for browser in (alice, bob):
        body = {"name": "vision", "parameters": {"ssh": OFFICE}}
        assert browser.writes("POST", "/api/v1/workspaces", body).status_code == 201
    crossplane.composes(cluster, "dev-bob", "vision", "us-west-2")
    theirs = cluster.get(CLAIMS, "dev-bob", "vision")["spec"]["resourceRef"]
    patch = json.dumps({"spec": {"resourceRef": theirs}})
    cluster.kubectl(
        *("patch", CLAIMS, "vision", "-n", "dev-alice", "--type=merge", "-p", patch)
    )

    def told(browser: Browser, namespace: str) -> Body:
        path = f"/api/v1/workspaces/{namespace}/vision/preview"
        answer: Body = browser.writes("POST", path, {}).json()
        return answer

    until("the composite", lambda: "effect" in told(bob, "dev-bob"))
    assert told(bob, "dev-bob")["region"] == "us-west-2"
    version = cluster.get(CLAIMS, "dev-alice", "vision")["metadata"]["resourceVersion"]
    until("the mirror", lambda: alice.version() >= int(version))
    assert told(alice, "dev-alice")["region"] == "us-east-1"
