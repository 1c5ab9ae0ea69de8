"""A person whom the company suspends, or whose groups change, does not keep the old rights."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cluster import Cluster
from hostile import Provider, comes_back
from people import Browser
from processes import port, until
from stage import Places, written

# An open page looks every 15 s.
LOOKING = 20


@pytest.fixture(scope="module")
def address(
    places: Places, provider: Provider, start: Callable[..., Any]
) -> Iterator[str]:
    """A portal that asks for groups each second."""
    number = port()
    path = written(places, provider.issuer, "renewal-authentication.yaml")
    with start(path, number, "renewal", sessions={"groupsEvery": "1s"}):
        yield f"https://localhost:{number}"


def signed_in(address: str, places: Places, provider: Provider) -> Browser:
    browser = Browser(address, places.certificates.authority)
    provider.forms.clear()

    def token(nonce: str) -> str:
        return provider.key.token(provider.claims(nonce, groups=["vision"]))

    answer = comes_back(browser, provider, token, refresh_token="first")
    assert answer.status_code == 303, answer.text
    return browser


@pytest.fixture
def alice(address: str, places: Places, provider: Provider) -> Browser:
    return signed_in(address, places, provider)


def says(provider: Provider, refresh: str, **claims: Any) -> None:
    """What the provider says of alice from now on. A later token has no nonce."""
    token = provider.key.token(provider.claims("", nonce=None, **claims))
    provider.gives(token, refresh_token=refresh)


def sessions(cluster: Cluster) -> set[str]:
    """The names of all sessions, also of other tests."""
    names = cluster.kubectl("get", "secrets", "-n", "gpu-portal", "-o", "name")
    return set(names.split())


def groups(browser: Browser) -> list[str]:
    found: list[str] = browser.get("/api/v1/me").json()["groups"]
    return found


def renewals(provider: Provider) -> list[str]:
    forms = [form for form in provider.forms if "refresh_token" in form]
    assert all(form["grant_type"] == ["refresh_token"] for form in forms)
    return [form["refresh_token"][0] for form in forms]


@pytest.mark.thorough
def test_the_groups_of_a_person_follow_the_provider_without_signing_in(
    alice: Browser, provider: Provider
) -> None:
    assert groups(alice) == ["acme:vision"]
    with alice.stream(alice.version()) as page:
        page.shows("session")
        says(provider, "second", groups=["vis-two"])
        until("the new groups", lambda: groups(alice) == ["acme:vis-two"])
        page.shows("reset", LOOKING)
    # Each token is used once, because the provider may allow no more.
    says(provider, "third", groups=["vis-three"])
    until("the next groups", lambda: groups(alice) == ["acme:vis-three"])
    used = renewals(provider)
    assert used[0] == "first" and set(used) == {"first", "second"}
    assert used == sorted(used), used


def test_whom_the_provider_refuses_is_signed_out_everywhere(
    address: str, places: Places, provider: Provider, cluster: Cluster
) -> None:
    before = sessions(cluster)
    alice = signed_in(address, places, provider)
    with alice.stream(alice.version()) as page:
        page.shows("session")
        assert len(sessions(cluster) - before) == 1
        provider.answer = (400, {"error": "invalid_grant"})
        page.shows("session", LOOKING, ended="Revoked")
    assert alice.get("/api/v1/me").status_code == 401
    assert sessions(cluster) <= before


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": "bob"},
        {"email": "bob@acme.io"},
        {"email_verified": False},
        {"groups": ["system:masters"]},
        {"iss": "https://evil.example"},
    ],
    ids=str,
)
def test_a_session_becomes_nobody_elses(
    alice: Browser, provider: Provider, claims: dict[str, Any]
) -> None:
    says(provider, "second", **claims)
    until("the end", lambda: alice.get("/api/v1/me").status_code == 401)


def test_a_provider_that_is_away_signs_nobody_out(
    alice: Browser, provider: Provider
) -> None:
    for answer in ((500, {}), (401, {"error": "invalid_client"}), (200, {"x": 1})):
        provider.answer = answer
        before = len(renewals(provider))
        until(
            "a look", lambda seen=before: sees(alice) and len(renewals(provider)) > seen
        )
        alice = signed_in_again(alice, provider)
    assert sees(alice)


def sees(browser: Browser) -> bool:
    return browser.get("/api/v1/me").status_code == 200


def signed_in_again(browser: Browser, provider: Provider) -> Browser:
    """The portal asks again after a minute only; a new session is asked for at once."""
    fresh = Browser(browser.portal, browser.authority)

    def token(nonce: str) -> str:
        return provider.key.token(provider.claims(nonce))

    kept = provider.answer
    assert comes_back(fresh, provider, token, refresh_token="first").status_code == 303
    provider.answer = kept
    return fresh


@pytest.mark.thorough
def test_a_session_that_nobody_uses_ends(
    places: Places, provider: Provider, start: Callable[..., Any], cluster: Cluster
) -> None:
    number = port()
    path = written(places, provider.issuer, "idle-authentication.yaml")
    with start(path, number, "idle", sessions={"idle": "4s"}):
        before = sessions(cluster)
        alice = signed_in(f"https://localhost:{number}", places, provider)
        bob = signed_in(f"https://localhost:{number}", places, provider)

        def left() -> int:
            # alice works, and bob does not.
            assert sees(alice)
            return len(sessions(cluster) - before)

        assert left() == 2
        until("the end of one session", lambda: left() == 1)
        assert not sees(bob) and sees(alice)
