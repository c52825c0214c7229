"""An issuer of JWTs on this machine: real keys, real HTTP, and it can be away, slow, wrong, or turn its keys."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Generator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

JWKS = "/keys"
METADATA = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"


@cache
def private_key(kind: str, number: int = 0) -> Any:
    """A key; the same again for the same number, since RSA keys take their time to make."""
    del number
    if kind == "RSA":
        return rsa.generate_private_key(65537, 2048)
    if kind == "weak RSA":
        return rsa.generate_private_key(65537, 1024)
    if kind == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return ec.generate_private_key({"ES256": ec.SECP256R1, "ES384": ec.SECP384R1}[kind]())


def algorithm_of(kind: str) -> str:
    return "RS256" if "RSA" in kind else kind


def public_jwk(kind: str, kid: str | None, number: int = 0) -> dict[str, Any]:
    """A key as it stands in a JWKS."""
    algorithm = jwt.get_algorithm_by_name(algorithm_of(kind))
    written = json.loads(algorithm.to_jwk(private_key(kind, number).public_key()))
    return {"kty": written["kty"], **{key: written[key] for key in ("n", "e", "crv", "x", "y") if key in written}} | (
        {} if kid is None else {"kid": kid, "use": "sig"}
    )


class Issuer:
    """Signs tokens, and answers what is asked of it."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.keys = [public_jwk("RSA", "one")]
        self.answers: dict[str, tuple[int, bytes, dict[str, str]]] = {}
        self.status = 200
        self.cache_control = ""
        self.url = ""

    def claims(self, **changes: Any) -> dict[str, Any]:
        """The claims of a good token; `None` leaves one out."""
        now = int(time.time())
        given = {"iss": self.url, "sub": "alice", "client_id": "agent", "scope": "mcp", "iat": now, "exp": now + 600}
        return {name: value for name, value in (given | changes).items() if value is not None}

    def sign(
        self,
        kind: str = "RSA",
        *,
        kid: str | None = "one",
        number: int = 0,
        header: dict[str, Any] | None = None,
        **changes: Any,
    ) -> str:
        """A token."""
        head = {"typ": "at+jwt"} | ({} if kid is None else {"kid": kid}) | (header or {})
        algorithm = algorithm_of(kind)
        return jwt.encode(self.claims(**changes), private_key(kind, number), algorithm, headers=head)

    def public_pem(self) -> bytes:
        return private_key("RSA").public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def answer(self, path: str) -> tuple[int, bytes, dict[str, str]]:
        self.asked[path] += 1
        if path in self.answers:
            return self.answers[path]
        if path == METADATA:
            document = {"issuer": self.url, "jwks_uri": f"{self.url}{JWKS}"}
            return self.status, json.dumps(document).encode(), {}
        if path == JWKS:
            headers = {"cache-control": self.cache_control} if self.cache_control else {}
            return self.status, json.dumps({"keys": self.keys}).encode(), headers
        return 404, b"{}", {}


@contextlib.contextmanager
def open_issuer() -> Generator[Issuer]:
    """An issuer that listens."""
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body, headers = issuer.answer(self.path)
            self.send_response(status)
            for name, value in {"content-length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    issuer.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
