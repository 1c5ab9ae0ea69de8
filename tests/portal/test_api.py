"""Pages, keys, the timeline and the budget of the versioned API."""

import json
from concurrent.futures import ThreadPoolExecutor

from cluster import CLAIMS, Cluster, Object
from people import Browser
from processes import until


def names(cluster: Cluster) -> list[str]:
    found = json.loads(cluster.kubectl("get", CLAIMS, "-A", "-o", "json"))["items"]
    return [claim["metadata"]["name"] for claim in found]


def test_pages_together_have_every_workspace_once(alice: Browser) -> None:
    made = [f"page-{number}" for number in range(5)]
    for name in made:
        answer = alice.writes("POST", "/api/v1/workspaces", {"name": name})
        assert answer.status_code == 201, answer.text
    found: list[str] = []
    after = ""
    while True:
        page = alice.get(f"/api/v1/workspaces?limit=2{after}").json()
        assert len(page["items"]) <= 2
        found += [row["name"] for row in page["items"]]
        if "continue" not in page:
            break
        after = f"&continue={page['continue']}"
    assert found == made
    chosen = alice.get("/api/v1/workspaces?q=page-3&owner=alice&phase=Pending").json()
    assert [row["name"] for row in chosen["items"]] == ["page-3"]
    assert alice.get("/api/v1/workspaces?namespace=dev-bob").json()["items"] == []
    assert alice.get("/api/v1/workspaces?limit=0").status_code == 400


def test_a_request_that_is_sent_twice_makes_one_workspace(
    alice: Browser, cluster: Cluster
) -> None:
    body = {"name": "once"}
    key = {"Idempotency-Key": "a key of the client"}
    answers = [
        alice.writes("POST", "/api/v1/workspaces", body, **key) for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [201, 201]
    first, again = (answer.json() for answer in answers)
    assert first["uid"] == again["uid"]
    other = {"name": "once", "parameters": {"opencvVersion": "4.8.0"}}
    reused = alice.writes("POST", "/api/v1/workspaces", other, **key)
    assert reused.status_code == 422
    assert reused.json()["type"] == "/problems/key-reused"
    # Without the key, or with another one, the name is taken.
    for headers in ({}, {"Idempotency-Key": "another"}):
        taken = alice.writes("POST", "/api/v1/workspaces", body, **headers)
        assert taken.status_code == 409
        assert taken.json()["errors"][0]["pointer"] == "/name"
    assert names(cluster) == ["once"]


def test_one_key_at_the_same_moment_makes_one_workspace(
    alice: Browser, cluster: Cluster
) -> None:
    wish = {"owner": "alice", "instanceType": "g4dn.xlarge"}
    key = {"Idempotency-Key": "at once"}

    def create(_: int) -> Object:
        answer = alice.writes("POST", "/api/workspaces", wish, **key)
        assert answer.status_code == 202, answer.text
        made: Object = answer.json()
        return made

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(create, range(8)))
    assert len({one["metadata"]["uid"] for one in made}) == 1
    assert len(names(cluster)) == 1


def test_the_timeline_has_what_is_still_known(alice: Browser, cluster: Cluster) -> None:
    alice.writes("POST", "/api/v1/workspaces", {"name": "vision"})
    claim = cluster.get(CLAIMS, "dev-alice", "vision")["metadata"]
    condition = {
        "type": "ComputeReady",
        "status": "False",
        "reason": "Launching",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    cluster.status("dev-alice", "vision", {"conditions": [condition]})
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "vision.1", "namespace": "dev-alice"},
            "involvedObject": {
                "kind": "GpuDevWorkspaceClaim",
                "name": "vision",
                "namespace": "dev-alice",
                "uid": claim["uid"],
            },
            "type": "Warning",
            "reason": "NoCapacity",
            "message": "there is no machine",
            "firstTimestamp": "2026-01-02T00:00:00Z",
            "lastTimestamp": "2026-01-02T00:00:00Z",
            "count": 2,
        },
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "other.1", "namespace": "dev-alice"},
            "involvedObject": {
                "kind": "Pod",
                "name": "vision",
                "namespace": "dev-alice",
            },
            "reason": "OfAnother",
            "lastTimestamp": "2026-01-02T00:00:00Z",
        },
    )

    def told() -> list[str]:
        path = "/api/v1/workspaces/dev-alice/vision/timeline"
        timeline = alice.get(path).json()
        assert "withoutEvents" not in timeline, timeline
        return [entry["what"] for entry in timeline["entries"]]

    expected = ["creationTimestamp", "NoCapacity", "ComputeReady=False"]
    until("the timeline", lambda: told() == expected)


def test_a_person_reads_their_own_budget(alice: Browser, cluster: Cluster) -> None:
    assert alice.get("/api/v1/budget").json() == {"monthlyUsd": None, "status": None}
    patch = '{"spec": {"budget": {"monthlyUsd": 250}}}'
    cluster.kubectl("patch", "devuser", "alice", "--type=merge", "-p", patch)
    counted = {
        "month": "2026-11",
        "monthlyUsd": 250,
        "spentUsd": 12.5,
        "reservedUsd": 4,
        "goneUsd": 0,
    }
    cluster.patch_status("devusers", "alice", {"budget": counted})

    def told() -> Object:
        found: Object = alice.get("/api/v1/budget").json()
        return found

    until("the budget", lambda: (told()["status"] or {}).get("spentUsd") == 12.5)
    assert told()["monthlyUsd"] == 250
    patch = '{"spec": {"budget": null}}'
    cluster.kubectl("patch", "devuser", "alice", "--type=merge", "-p", patch)
    cluster.patch_status("devusers", "alice", {"budget": None})
