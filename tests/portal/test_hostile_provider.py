"""No token but an honest one signs anybody in, and none makes a person of Kubernetes' own."""

import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from hostile import Key, Provider, by_secret, comes_back, unsigned
from people import Browser
from processes import port
from stage import Places, written


@pytest.fixture(scope="module")
def address(
    places: Places, provider: Provider, start: Callable[..., Any]
) -> Iterator[str]:
    """A portal that trusts this provider."""
    number = port()
    path = written(places, provider.issuer, "hostile-authentication.yaml")
    with start(path, number, "hostile-portal"):
        yield f"https://localhost:{number}"


@pytest.fixture
def visitor(address: str, places: Places) -> Browser:
    return Browser(address, places.certificates.authority)


def test_an_honest_token_signs_in(visitor: Browser, provider: Provider) -> None:
    """The other tests mean something only if this one passes."""
    answer = comes_back(
        visitor, provider, lambda nonce: provider.key.token(provider.claims(nonce))
    )
    assert answer.status_code == 303, answer.text
    assert visitor.get("/api/v1/me").json()["user"] == "alice@acme.io"


CLAIMS: dict[str, dict[str, Any]] = {
    "of another issuer": {"iss": "https://evil.example"},
    "for another client": {"aud": "kubectl"},
    "for nobody": {"aud": []},
    "with another nonce": {"nonce": "another"},
    "without a nonce": {"nonce": None},
    "that is over": {"exp": int(time.time()) - 3600, "iat": int(time.time()) - 7200},
    "without an end": {"exp": None},
    "without a subject": {"sub": None},
    "with an address that nobody verified": {"email_verified": False},
    "with an address of which nothing is said": {"email_verified": None},
    "without an address": {"email": None},
    "of Kubernetes' own": {"email": "system:masters"},
    "of a service account": {"email": "system:serviceaccount:kube-system:default"},
    "with a blank": {"email": "alice@acme.io "},
    "with a line end": {"email": "alice@acme.io\r\nImpersonate-Group: system:masters"},
    "with nothing as a name": {"email": ""},
    "in a group of Kubernetes' own": {"groups": ["vision", "system:masters"]},
    "in too many groups": {"groups": [f"vis{n}" for n in range(5000)]},
    "whose groups were left out": {"_claim_names": {"groups": "src1"}},
}


@pytest.mark.parametrize("claims", CLAIMS.values(), ids=CLAIMS.keys())
def test_no_token_signs_in(
    visitor: Browser, provider: Provider, claims: dict[str, Any]
) -> None:
    answer = comes_back(
        visitor,
        provider,
        lambda nonce: provider.key.token(provider.claims(nonce, **claims)),
    )
    assert answer.status_code == 403, answer.text
    assert "You are not signed in" in answer.text
    assert visitor.get("/api/v1/me").status_code == 401


def test_no_token_that_the_provider_did_not_sign_signs_in(
    visitor: Browser, provider: Provider
) -> None:
    key = provider.key

    def tampered(nonce: str) -> str:
        head, claims, signature = key.token(provider.claims(nonce)).split(".")
        return f"{head}.{claims}.{signature[:-6]}AAAAAA"

    forged: dict[str, Callable[[str], str | None]] = {
        "unsigned": lambda nonce: unsigned(provider.claims(nonce)),
        "by the public key": lambda nonce: by_secret(
            provider.claims(nonce), key.pem(), key.name
        ),
        "by the client's secret": lambda nonce: by_secret(
            provider.claims(nonce), b"the-secret-of-the-portal", key.name
        ),
        "by an unknown key": lambda nonce: Key("unknown").token(provider.claims(nonce)),
        "by another key of that name": lambda nonce: Key(key.name).token(
            provider.claims(nonce)
        ),
        "with another algorithm in its head": lambda nonce: key.token(
            provider.claims(nonce), alg="none"
        ),
        "tampered": tampered,
        "no token": lambda nonce: "x.y.z",
        "none": lambda nonce: None,
    }
    for name, token in forged.items():
        answer = comes_back(visitor, provider, token)
        assert answer.status_code == 403, (name, answer.status_code, answer.text)
        assert visitor.get("/api/v1/me").status_code == 401, name


def test_a_provider_that_refuses_is_quoted(
    visitor: Browser, provider: Provider
) -> None:
    begun = visitor.get("/login", allow_redirects=False)
    state = parse_qs(urlsplit(begun.headers["Location"]).query)["state"][0]
    provider.answer = (
        400,
        {"error": "invalid_grant", "error_description": "<b>no</b>"},
    )
    answer = visitor.get(f"/login/callback?state={state}&code=x")
    assert answer.status_code == 403
    assert "invalid_grant" in answer.text and "<b>" not in answer.text


def test_many_who_sign_in_ask_the_provider_once(
    visitor: Browser, provider: Provider
) -> None:
    visitor.get("/login", allow_redirects=False)
    provider.asked.clear()
    for _ in range(20):
        assert visitor.get("/login", allow_redirects=False).status_code == 303
    assert provider.asked.count("/keys") <= 1
