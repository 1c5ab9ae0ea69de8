"""A provider of identities that answers what a test wants: also what no honest one would."""

import base64
import hashlib
import hmac
import json
import ssl
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from certificates import Certificates
from people import Browser

Object = dict[str, Any]


def text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Key:
    """A key that signs tokens."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.private = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def public(self) -> Object:
        numbers = self.private.public_key().public_numbers()
        size = (numbers.n.bit_length() + 7) // 8
        n, e = numbers.n.to_bytes(size, "big"), numbers.e.to_bytes(3, "big")
        base = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.name}
        return {**base, "n": text(n), "e": text(e)}

    def pem(self) -> bytes:
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        public = self.private.public_key()
        return public.public_bytes(serialization.Encoding.PEM, form)

    def token(self, claims: Object, **header: str) -> str:
        """A signed token. `alg` may say something else than how it is signed."""
        head = {"alg": "RS256", "typ": "JWT", "kid": self.name, **header}
        signed = (
            f"{text(json.dumps(head).encode())}.{text(json.dumps(claims).encode())}"
        )
        signature = self.private.sign(
            signed.encode(), padding.PKCS1v15(), hashes.SHA256()
        )
        return f"{signed}.{text(signature)}"


def unsigned(claims: Object) -> str:
    head = json.dumps({"alg": "none", "typ": "JWT"}).encode()
    return f"{text(head)}.{text(json.dumps(claims).encode())}."


def by_secret(claims: Object, secret: bytes, name: str) -> str:
    """A token that is signed with a secret, such as the bytes of a public key."""
    head = json.dumps({"alg": "HS256", "typ": "JWT", "kid": name}).encode()
    signed = f"{text(head)}.{text(json.dumps(claims).encode())}"
    mac = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{text(mac)}"


class Provider:
    """Listens on a port of this machine, over TLS."""

    def __init__(self, certificates: Certificates, port: int) -> None:
        self.issuer = f"https://127.0.0.1:{port}"
        self.key = Key("first")
        # The answer of the token endpoint: status, and body.
        self.answer: tuple[int, Object] = (200, {})
        self.asked: list[str] = []
        # The forms that came to the token endpoint.
        self.forms: list[dict[str, list[str]]] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.asked.append(self.path)
                self.send(200, provider.pages().get(self.path, {}))

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                provider.asked.append(self.path)
                provider.forms.append(parse_qs(self.rfile.read(length).decode()))
                self.send(*provider.answer)

            def send(self, status: int, body: Object) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.certificate, certificates.key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def pages(self) -> dict[str, Object]:
        about = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/auth",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "response_types_supported": ["code"],
            "scopes_supported": ["openid", "email", "groups", "offline_access"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
        }
        return {
            "/.well-known/openid-configuration": about,
            "/keys": {"keys": [self.key.public()]},
        }

    def claims(self, attempt: str, **other: Any) -> Object:
        """The claims of an honest token for the nonce of an attempt; `None` leaves one out."""
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": "gpu-portal",
            "sub": "alice",
            "iat": now,
            "exp": now + 600,
            "nonce": attempt,
            "email": "alice@acme.io",
            "email_verified": True,
            **other,
        }
        return {key: value for key, value in claims.items() if value is not None}

    def gives(self, token: str | None, **other: str) -> None:
        body: Object = {"access_token": "a", "token_type": "Bearer", "expires_in": 600}
        body |= other
        self.answer = (200, body if token is None else {**body, "id_token": token})

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def comes_back(
    visitor: Browser,
    provider: Provider,
    token: Callable[[str], str | None],
    **other: str,
) -> requests.Response:
    """Goes to the provider, and comes back with a token that is made for the attempt."""
    begun = visitor.get("/login", allow_redirects=False)
    asked = parse_qs(urlsplit(begun.headers["Location"]).query)
    assert asked["code_challenge_method"] == ["S256"]
    provider.gives(token(asked["nonce"][0]), **other)
    state = asked["state"][0]
    return visitor.get(f"/login/callback?state={state}&code=x", allow_redirects=False)
