"""Credentials that gateways are measured with: a static token of Pegboard's, and a JWT of an issuer of our own, whose
keys are served on loopback."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

from benchmarks.gateways.processes import NotStarted, environment, python

AUDIENCE = "https://gateway.example/mcp"
_LIFE = 24 * 3600
_LIMIT = 60.0


def add_token(config: Path, folder: Path) -> str:
    """A new static token, made by Pegboard's own command."""
    command = python("pegboard", "token", "add", "benchmark", "--config", str(config))
    done = subprocess.run(
        command, env=environment(folder), cwd=folder, capture_output=True, text=True, timeout=_LIMIT, check=False
    )
    found = next((word for word in done.stdout.split() if word.startswith("pgb_")), None)
    if found is None:
        said = done.stderr.strip().splitlines()
        raise NotStarted(f"pegboard token add gave no token: {said[-1] if said else 'it said nothing'}")
    return found


@dataclass(frozen=True)
class Issuer:
    """An authorization server, as far as gateways need one: its name, its keys, and a token of it."""

    url: str
    jwks: str
    token: str

    @property
    def jwks_url(self) -> str:
        """Where its keys are."""
        return f"{self.url}/jwks.json"


@cache
def issuer() -> Issuer:
    """One for the whole run; it ends with the process."""
    key = ec.generate_private_key(ec.SECP256R1())
    algorithm = jwt.get_algorithm_by_name("ES256")
    public = json.loads(algorithm.to_jwk(key.public_key()))
    jwks = json.dumps({"keys": [{**public, "kid": "one", "use": "sig", "alg": "ES256"}]})
    url = f"http://127.0.0.1:{_serve(jwks.encode())}"
    now = int(time.time())
    claims: dict[str, Any] = {"iss": url, "aud": AUDIENCE, "sub": "ada", "client_id": "benchmark", "scope": "tools"}
    claims |= {"iat": now, "exp": now + _LIFE}
    token = jwt.encode(claims, key, algorithm="ES256", headers={"kid": "one", "typ": "at+jwt"})
    return Issuer(url, jwks, token)


def _serve(jwks: bytes) -> int:
    """Serve keys, and nothing else, beside everything; the port."""

    class Keys(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/jwks.json" else 404)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(jwks)))
            self.end_headers()
            self.wfile.write(jwks)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Keys)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port
