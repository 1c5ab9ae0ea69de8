"""A person sees and changes their own workspaces, and nobody else's."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from cluster import CLAIMS, Cluster
from people import Browser
from processes import until

READY = {
    "phase": "Ready",
    "ssh": "ssh developer@203.0.113.7",
    "instanceId": "i-0123456789abcdef0",
    "publicIp": "203.0.113.7",
    "machine": "g4dn.xlarge",
}


def test_the_first_dashboard_creates_lists_and_deletes(
    alice: Browser, cluster: Cluster
) -> None:
    asked = {"owner": "alice@acme.io", "instanceType": "g4dn.xlarge"}
    created = alice.writes("POST", "/api/workspaces", asked)
    assert created.status_code == 202
    name = created.json()["metadata"]["name"]
    # Who has created something finds it in the next list.
    (row,) = alice.get("/api/workspaces").json()
    assert row["name"] == name
    assert row["owner"] == "alice" and row["instanceType"] == "g4dn.xlarge"
    assert row["status"]["phase"] == "Pending"
    cluster.status("dev-alice", name, READY)
    ready = until(
        "the claim to be Ready",
        lambda: [
            one
            for one in alice.get("/api/workspaces").json()
            if one["status"]["phase"] == "Ready"
        ],
    )
    assert ready[0]["status"]["connection"] == READY["ssh"]
    assert ready[0]["status"]["publicIp"] == READY["publicIp"]
    assert alice.writes("DELETE", f"/api/workspaces/{name}").status_code == 204
    (row,) = alice.get("/api/workspaces").json()
    assert row["status"]["phase"] == "Deleting"
    cluster.collected("dev-alice", name)
    until("the claim to be gone", lambda: alice.get("/api/workspaces").json() == [])
    gone = alice.writes("DELETE", f"/api/workspaces/{name}")
    assert gone.status_code == 404 and gone.json().keys() == {"error"}


def test_the_first_dashboard_is_told_what_is_wrong(alice: Browser) -> None:
    for body in ({}, {"owner": ""}, {"owner": "bob@acme.io"}):
        refused = alice.writes("POST", "/api/workspaces", body)
        assert refused.status_code == 400, refused.text
        assert refused.json().keys() == {"error"}
        assert "owner" in refused.json()["error"].lower()
    # What the definition of a claim refuses comes from Kubernetes, with the field.
    wrong = {"owner": "alice", "instanceType": "not a type"}
    refused = alice.writes("POST", "/api/workspaces", wrong)
    assert refused.status_code == 422
    assert "instanceType" in refused.json()["error"]


def test_a_field_that_kubernetes_refuses_is_marked(alice: Browser) -> None:
    wrong = {"name": "x", "parameters": {"ssh": {"publicKeys": ["no key"]}}}
    refused = alice.writes("POST", "/api/v1/workspaces", wrong)
    assert refused.status_code == 422
    (error,) = refused.json()["errors"]
    assert error["pointer"] == "/parameters/ssh/publicKeys/0"
    unknown = {"name": "x", "parameters": {"colour": "red"}}
    refused = alice.writes("POST", "/api/v1/workspaces", unknown)
    assert refused.status_code == 400 and "colour" in refused.json()["detail"]
    again = {"name": "twice"}
    assert alice.writes("POST", "/api/v1/workspaces", again).status_code == 201
    assert alice.writes("POST", "/api/v1/workspaces", again).status_code == 409


def test_people_see_and_change_their_own_only(alice: Browser, bob: Browser) -> None:
    created = alice.writes("POST", "/api/v1/workspaces", {"name": "mine"})
    assert created.status_code == 201
    assert alice.names() == ["mine"] and bob.names() == []
    path = "/api/v1/workspaces/dev-alice/mine"
    assert alice.get(path).json()["name"] == "mine"
    assert bob.get(path).status_code == 404
    assert bob.writes("DELETE", path).status_code == 404
    assert bob.writes("DELETE", "/api/workspaces/mine").status_code == 404
    # Nobody learns whether another person's workspace exists.
    absent = bob.get("/api/v1/workspaces/dev-alice/absent")
    assert absent.status_code == 404
    expected = absent.json()["detail"].replace("absent", "mine")
    assert bob.get(path).json()["detail"] == expected
    assert alice.names() == ["mine"]


def test_a_page_of_another_site_changes_nothing(alice: Browser) -> None:
    body = {"name": "planted"}
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "https://evil.acme.io"},
        {"Origin": "https://evil.example"},
        {"X-XSRF-TOKEN": "-"},
        {"X-XSRF-TOKEN": "guessed"},
        {"Content-Type": "text/plain"},
        {"Sec-Fetch-Site": "-", "Origin": "-"},
    ):
        refused = alice.writes("POST", "/api/v1/workspaces", body, **headers)
        assert refused.status_code == 403, headers
        refused = alice.writes("POST", "/api/workspaces", {"owner": "alice"}, **headers)
        assert refused.status_code == 403, headers
    assert alice.names() == []
    # No page of another site reads anything: there is no CORS.
    answer = alice.get("/api/v1/me", headers={"Origin": "https://evil.example"})
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_a_page_sees_changes_as_they_happen_and_goes_on_where_it_was(
    alice: Browser, bob: Browser, cluster: Cluster
) -> None:
    start = alice.version()
    with alice.stream(start) as page, bob.stream(bob.version()) as other:
        page.shows("session")
        other.shows("session")
        alice.writes("POST", "/api/v1/workspaces", {"name": "live"})
        page.shows("put", name="live", phase="Pending")
        cluster.status("dev-alice", "live", READY)
        page.shows("put", name="live", phase="Ready", ssh=READY["ssh"])
        middle = page.ids[-1]
        alice.writes("DELETE", "/api/v1/workspaces/dev-alice/live")
        page.shows("put", name="live", phase="Deleting")
        cluster.collected("dev-alice", "live")
        page.shows("gone", name="live", namespace="dev-alice")
        bob.writes("POST", "/api/v1/workspaces", {"name": "last"})
        other.shows("put", name="last")
        assert page.ids == sorted(page.ids)
        # Nothing of another person was sent.
        assert {
            data.get("name") for kind, data in other.messages if kind != "session"
        } == {"last"}
    with alice.stream(0, **{"Last-Event-ID": str(middle)}) as again:
        again.shows("gone", name="live")
        assert [kind for kind, _ in again.messages if kind == "put"] == []
    with alice.stream(1) as old:
        old.shows("reset")
        until("the stream to end", lambda: old.is_over, 5)


def test_a_suspended_person_sees_nothing_more(alice: Browser, cluster: Cluster) -> None:
    alice.writes("POST", "/api/v1/workspaces", {"name": "mine"})
    patch = ("patch", "devuser", "alice", "--type=merge", "-p")
    with alice.stream(alice.version()) as page:
        page.shows("session")
        cluster.kubectl(*patch, '{"spec": {"suspended": true}}')
        try:
            page.shows("reset", seconds=5)
            assert alice.names() == []
            refused = alice.writes("POST", "/api/v1/workspaces", {"name": "more"})
            assert refused.status_code == 403 and "suspended" in refused.text
        finally:
            cluster.kubectl(*patch, '{"spec": {"suspended": null}}')
    until("alice to be back", lambda: alice.names() == ["mine"])


def test_each_write_is_in_the_api_servers_log_with_the_id_of_the_request(
    alice: Browser, cluster: Cluster
) -> None:
    created = alice.writes("POST", "/api/v1/workspaces", {"name": "written"})
    request = created.headers["X-Request-Id"]

    def recorded() -> list[dict[str, object]]:
        return cluster.recorded(request)

    (record,) = until("the audit log", recorded)
    assert record["verb"] == "create"
    assert record["user"]["username"] == "system:serviceaccount:gpu-portal:gpu-portal"  # type: ignore[index]
    owner = "system:serviceaccount:dev-alice:gpu-workspaces.owner"
    assert record["impersonatedUser"]["username"] == owner  # type: ignore[index]


def test_a_claim_that_git_has_is_not_changed_around_git(
    alice: Browser, cluster: Cluster
) -> None:
    alice.writes("POST", "/api/v1/workspaces", {"name": "from-git"})
    cluster.kubectl(
        *("annotate", CLAIMS, "from-git", "-n", "dev-alice"),
        "argocd.argoproj.io/tracking-id=team:platform.acme.io/x:dev-alice/from-git",
    )
    until(
        "the portal to know",
        lambda: alice.get("/api/v1/workspaces").json()["items"][0].get("fromGit"),
    )
    refused = alice.writes("DELETE", "/api/v1/workspaces/dev-alice/from-git")
    assert refused.status_code == 409 and "git" in refused.json()["detail"]
    assert alice.names() == ["from-git"]


@pytest.mark.parametrize("path", ["/", "/healthz", "/api/v1/me", "/login/callback"])
def test_every_answer_tells_browsers_what_a_page_may_do(
    browser: Browser, path: str
) -> None:
    headers = browser.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Server" not in headers


def test_a_body_that_is_too_large_too_deep_or_no_json_is_refused(
    alice: Browser,
) -> None:
    send = lambda text: alice.http.post(  # noqa: E731
        f"{alice.portal}/api/v1/workspaces",
        data=text,
        headers={
            "Content-Type": "application/json",
            "Sec-Fetch-Site": "same-origin",
            "X-XSRF-TOKEN": alice.http.cookies.get("XSRF-TOKEN") or "",
        },
    )
    assert send("{").status_code == 400
    assert send("[" * 10_000).status_code == 400
    assert send('{"name": "' + "a" * 70_000 + '"}').status_code == 413


def test_no_secret_is_in_the_portals_log(alice: Browser, places: object) -> None:
    folder: Path = places.folder  # type: ignore[attr-defined]
    log = (folder / "portal.log").read_text()
    assert "alice@acme.io" in log
    for cookie in alice.http.cookies:
        assert cookie.value and cookie.value not in log
    assert "the-secret-of-the-portal" not in log


RUN = {"startedAt": "2026-01-01T00:00:00Z", "limits": {"maxLifetime": "10h"}}
PATH = "/api/v1/workspaces/dev-alice/mine"
FROM_GIT = "argocd.argoproj.io/tracking-id=team:platform.acme.io/x:dev-alice/mine"


@pytest.fixture
def mine(alice: Browser, cluster: Cluster) -> Browser:
    """alice, with a workspace that runs."""
    alice.writes("POST", "/api/v1/workspaces", {"name": "mine"})
    cluster.status("dev-alice", "mine", {**READY, "lifecycle": RUN})
    until("the workspace to run", lambda: alice.get(PATH).json()["phase"] == "Ready")
    return alice


def annotations(cluster: Cluster) -> dict[str, str]:
    found: dict[str, str] = cluster.get(CLAIMS, "dev-alice", "mine")["metadata"].get(
        "annotations", {}
    )
    return found


def test_a_person_stops_starts_and_extends(mine: Browser, cluster: Cluster) -> None:
    """Wishes are annotations, so they work for claims from git, too."""
    cluster.kubectl("annotate", CLAIMS, "mine", "-n", "dev-alice", FROM_GIT)
    until("the portal to know", lambda: mine.get(PATH).json().get("fromGit"))
    extended = mine.writes("POST", f"{PATH}/extend", {"by": "4h"})
    assert extended.status_code == 202, extended.text
    asked = annotations(cluster)["platform.acme.io/extend-until"]
    assert asked > "2026-01-01T14:00:00Z"
    extension = {
        "askedUntil": asked,
        "grantedUntil": "2026-01-01T12:00:00Z",
        "message": "the policy allows 2h",
    }
    cluster.status("dev-alice", "mine", {"lifecycle": {**RUN, "extension": extension}})
    told = until("the answer", lambda: mine.get(PATH).json().get("extension"))
    assert told == extension

    stopped = mine.writes("POST", f"{PATH}/stop")
    assert stopped.status_code == 202
    assert "platform.acme.io/stop" in annotations(cluster)
    cluster.status("dev-alice", "mine", {"phase": "Stopped"})
    until("the stop", lambda: mine.get(PATH).json()["phase"] == "Stopped")
    # What is so already needs nothing.
    assert mine.writes("POST", f"{PATH}/stop").status_code == 200
    refused = mine.writes("POST", f"{PATH}/extend", {"by": "4h"})
    assert refused.status_code == 409 and "start it first" in refused.json()["detail"]
    assert mine.writes("POST", f"{PATH}/start").status_code == 202
    assert "platform.acme.io/resume" in annotations(cluster)


def test_nobody_else_stops_starts_or_extends(mine: Browser, bob: Browser) -> None:
    for action, body in (("stop", None), ("start", None), ("extend", {"by": "1h"})):
        assert bob.writes("POST", f"{PATH}/{action}", body).status_code == 404
        foreign = {"Sec-Fetch-Site": "cross-site"}
        refused = mine.writes("POST", f"{PATH}/{action}", body, **foreign)
        assert refused.status_code == 403
    assert bob.get(f"{PATH}/parameters").status_code == 404
    refused = bob.writes("PATCH", f"{PATH}/parameters", {}, **{"If-Match": "x"})
    assert refused.status_code == 404


def test_of_two_who_edit_one_claim_the_second_is_told(
    mine: Browser, cluster: Cluster
) -> None:
    path = f"{PATH}/parameters"
    shown = mine.get(path)
    tag = {"If-Match": shown.headers["ETag"]}
    before = shown.json()
    assert before["owner"] == "alice"
    older, newer = {"opencvVersion": "4.8.0"}, {"opencvVersion": "4.10.0"}
    assert mine.writes("PATCH", path, older).status_code == 428
    # The status may change in between: it is not what was edited.
    cluster.status("dev-alice", "mine", {"message": "changed"})
    first = mine.writes("PATCH", path, older, **tag)
    assert first.status_code == 200, first.text
    second = mine.writes("PATCH", path, newer, **tag)
    assert second.status_code == 412 and "look at it again" in second.json()["detail"]
    assert mine.get(path).json()["opencvVersion"] == "4.8.0"
    again = {"If-Match": first.headers["ETag"]}
    wrong = mine.writes("PATCH", path, {"owner": "bob"}, **again)
    assert wrong.status_code == 422 and "immutable" in wrong.text
    removed = mine.writes("PATCH", path, {"opencvVersion": None}, **again)
    assert removed.json() == before


def test_parameters_of_a_claim_from_git_are_changed_in_git(
    mine: Browser, cluster: Cluster
) -> None:
    path = f"{PATH}/parameters"
    tag = {"If-Match": mine.get(path).headers["ETag"]}
    cluster.kubectl("annotate", CLAIMS, "mine", "-n", "dev-alice", FROM_GIT)
    until("the portal to know", lambda: mine.get(PATH).json().get("fromGit"))
    refused = mine.writes("PATCH", path, {"opencvVersion": "4.8.0"}, **tag)
    assert refused.status_code == 409 and "git" in refused.json()["detail"]


def test_a_new_flavor_is_offered_without_a_new_portal(
    alice: Browser, cluster: Cluster
) -> None:
    status = {
        "placements": "EC2, Cluster",
        "gpu": "1 x T4 16Gi",
        "instanceHourlyUsd": 0.526,
        "podHourlyUsd": 0.4,
    }
    cluster.offer(status)

    def offered() -> list[tuple[str, float | None]]:
        offers = alice.get("/api/v1/catalogue").json()["offers"]
        return [
            (one["placement"], one.get("hourlyUsd"))
            for one in offers
            if one["flavor"] == "t4"
        ]

    expected = [("EC2", 0.526), ("Cluster", 0.4)]
    until("the new price", lambda: offered() == expected)
    cluster.patch_status("workspaceflavors", "t4", {"podHourlyUsd": 0.8})
    until("the newer price", lambda: offered()[1] == ("Cluster", 0.8))
    wish = {"name": "t4", "parameters": {"flavor": "t4", "placement": "Cluster"}}
    assert alice.writes("POST", "/api/v1/workspaces", wish).status_code == 201
    # Nothing of the platform's own is told.
    assert "image" not in str(alice.get("/api/v1/catalogue").json()["offers"])


def test_who_asks_too_often_waits_and_nobody_else_does(
    alice: Browser, bob: Browser
) -> None:
    codes = [
        alice.writes("POST", "/api/v1/workspaces", {"name": "A"}).status_code
        for _ in range(40)
    ]
    assert codes[:20] == [400] * 20 and 429 in codes
    refused = alice.writes("POST", "/api/v1/workspaces", {"name": "A"})
    while refused.status_code != 429:
        refused = alice.writes("POST", "/api/v1/workspaces", {"name": "A"})
    assert int(refused.headers["Retry-After"]) >= 1
    assert bob.writes("POST", "/api/v1/workspaces", {"name": "fine"}).status_code == 201
    assert alice.names() == []
    until(
        "alice to be let in again",
        lambda: alice.writes("POST", "/api/v1/workspaces", {"name": "A"}).status_code
        == 400,
    )


def test_a_session_has_eight_streams_at_most(alice: Browser) -> None:
    version = alice.version()
    with ExitStack() as streams:
        for _ in range(8):
            streams.enter_context(alice.stream(version)).shows("session")
        refused = alice.get(f"/api/v1/watch?since={version}")
        assert refused.status_code == 429 and "streams" in refused.json()["detail"]
    until(
        "a stream to be possible again",
        lambda: alice.get(f"/api/v1/watch?since={version}", stream=True).ok,
    )
