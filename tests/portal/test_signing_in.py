"""Who signs in is who Kubernetes says they are, and nobody else is signed in."""

import base64
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cluster import Cluster
from people import PASSWORD, SESSION, Browser
from processes import until
from stage import CLIENT, Places

SESSIONS = "platform.acme.io/portal-session"


def test_a_person_signs_in_and_is_who_kubectl_says(
    browser: Browser, cluster: Cluster, places: Places
) -> None:
    browser.sign_in("alice@acme.io")
    me = browser.get("/api/v1/me").json()
    assert (me["owner"], me["namespace"]) == ("alice", "dev-alice")
    # The same person with a token of their own.
    token = browser.http.post(
        f"{places.issuer}/token",
        data={
            "grant_type": "password",
            "username": "alice@acme.io",
            "password": PASSWORD,
            "scope": "openid email groups",
        },
        auth=(CLIENT, "the-secret-of-the-portal"),
    ).json()["id_token"]
    # The API server reads the provider's keys some seconds after it has started.
    user = until(
        "the API server to know alice", lambda: whoami(browser, cluster, token)
    )
    assert me["user"] == user["username"]
    # Of the groups, only those count that the configuration names.
    assert me["groups"] == [one for one in user["groups"] if one == "acme:vision"]


def whoami(browser: Browser, cluster: Cluster, token: str) -> Any:
    """Who the API server takes the holder of a token for."""
    config = json.loads(cluster.kubeconfig.read_text())
    server = config["clusters"][0]["cluster"]["server"]
    kind = "SelfSubjectReview"
    answer = browser.http.post(
        f"{server}/apis/authentication.k8s.io/v1/selfsubjectreviews",
        json={"apiVersion": "authentication.k8s.io/v1", "kind": kind},
        headers={"Authorization": f"Bearer {token}"},
        verify=False,
    )
    return answer.ok and answer.json()["status"]["userInfo"]


def test_who_is_not_signed_in_is_told_where(browser: Browser) -> None:
    answer = browser.get("/api/v1/workspaces")
    assert answer.status_code == 401
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "/login" in answer.json()["detail"]
    assert browser.get("/api/workspaces").json().keys() == {"error"}
    assert browser.get("/api/v1/watch").status_code == 401


def test_a_person_without_a_dev_user_is_told_so(browser: Browser) -> None:
    browser.sign_in("nobody@acme.io")
    assert "no DevUser" in browser.get("/api/v1/me").json()["problem"]
    assert browser.names() == []
    refused = browser.writes("POST", "/api/v1/workspaces", {"name": "x"})
    assert refused.status_code == 403
    assert "ask the platform team" in refused.json()["detail"]


def test_whose_session_is_deleted_is_signed_out_at_once(
    alice: Browser, bob: Browser, cluster: Cluster
) -> None:
    with alice.stream(alice.version()) as page:
        page.shows("session")
        cluster.kubectl("delete", "secrets", "-n", CLIENT, "-l", SESSIONS)
        assert page.shows("session", seconds=5, ended="Revoked")
        until("the stream to end", lambda: page.is_over, 5)
    assert alice.get("/api/v1/workspaces").status_code == 401
    assert bob.get("/api/v1/workspaces").status_code == 401


def test_who_reads_the_secrets_has_no_session(alice: Browser, cluster: Cluster) -> None:
    text = cluster.kubectl("get", "secrets", "-n", CLIENT, "-o", "json")
    cookies = {cookie.name: cookie.value for cookie in alice.http.cookies}
    assert cookies[SESSION] and "alice" in alice.get("/api/v1/me").text
    decoded = text
    for secret in json.loads(text)["items"]:
        for value in secret.get("data", {}).values():
            decoded += base64.b64decode(value).decode(errors="replace")
    for hidden in (cookies[SESSION], cookies["XSRF-TOKEN"], "alice@acme.io"):
        assert hidden and hidden not in decoded


def test_a_person_signs_out(alice: Browser) -> None:
    copied = Browser(alice.portal, alice.authority)
    copied.http.cookies.update({c.name: c.value or "" for c in alice.http.cookies})
    assert alice.writes("POST", "/logout").status_code == 204
    # The session is over, and not only forgotten by this browser.
    assert copied.get("/api/v1/me").status_code == 401


def test_a_person_comes_back_to_the_page_and_to_no_other_site(browser: Browser) -> None:
    answer = browser.sign_in("alice@acme.io", "/login?returnTo=/workspaces/a")
    assert answer.url == f"{browser.portal}/workspaces/a"
    for evil in ("//evil.example", "https://evil.example", "/\\evil.example"):
        again = Browser(browser.portal, browser.authority)
        answer = again.sign_in("alice@acme.io", f"/login?returnTo={evil}")
        assert answer.url == f"{browser.portal}/"


def test_an_answer_that_another_browser_asked_for_signs_nobody_in(
    browser: Browser, places: Places
) -> None:
    """A stolen or planted answer: login CSRF."""
    begun = browser.get("/login", allow_redirects=False)
    state = parse_qs(urlsplit(begun.headers["Location"]).query)["state"][0]
    attempt = [cookie for cookie in browser.http.cookies if "attempt" in cookie.name]
    other = Browser(browser.portal, browser.authority)
    answer = other.get(f"/login/callback?state={state}&code=stolen")
    assert answer.status_code == 400 and "another browser" in answer.text
    # With the cookie, but another state.
    (cookie,) = attempt
    other.http.cookies.set(cookie.name, cookie.value)
    changed = state[:-1] + ("A" if state[-1] != "A" else "B")
    answer = other.get(f"/login/callback?state={changed}&code=stolen")
    assert answer.status_code == 403 and "does not belong" in answer.text
    # Of another provider.
    answer = other.get(f"/login/callback?state={state}&code=x&iss=https://evil.example")
    assert answer.status_code == 403 and places.issuer in answer.text
    assert other.get("/api/v1/me").status_code == 401


def test_a_code_counts_once(browser: Browser) -> None:
    answer = browser.sign_in("alice@acme.io")
    (callback,) = [one.url for one in answer.history if "/login/callback" in one.url]
    assert browser.get("/api/v1/me").status_code == 200
    again = Browser(browser.portal, browser.authority)
    again.http.cookies.update(
        {c.name: c.value or "" for c in browser.http.cookies if "attempt" in c.name}
    )
    assert again.http.get(callback).status_code == 400
    assert again.get("/api/v1/me").status_code == 401


def test_what_the_provider_says_is_no_markup(browser: Browser) -> None:
    begun = browser.get("/login", allow_redirects=False)
    state = parse_qs(urlsplit(begun.headers["Location"]).query)["state"][0]
    answer = browser.get(
        f"/login/callback?state={state}&error=x&error_description=<script>alert(1)</script>"
    )
    assert answer.status_code == 403
    assert "<script>" not in answer.text and "&lt;script&gt;" in answer.text


def test_a_proxy_cannot_say_who_somebody_is(alice: Browser) -> None:
    for name in (
        "Impersonate-User",
        "Impersonate-Group",
        "X-Remote-User",
        "X-Forwarded-User",
    ):
        answer = alice.get("/api/v1/me", headers={name: "bob"})
        assert answer.status_code == 400 and name.lower() in answer.json()["detail"]
