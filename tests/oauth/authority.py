"""An authorization server on this machine whose user agrees to everything: registration, PKCE, rotating refresh tokens
that end the whole grant when one is used twice, and a count of all that is asked of it."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import secrets
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

WELL_KNOWN = "/.well-known/oauth-authorization-server"


@dataclass
class Family:
    """What came of one consent."""

    user: str
    client: str
    scopes: tuple[str, ...]
    resource: str | None
    redirect_uri: str = ""
    challenge: str = ""
    # The newest refresh token alone is good.
    refresh: str = ""
    used: set[str] = field(default_factory=set)
    ended: bool = False


@dataclass(frozen=True)
class AccessToken:
    """What the protected server learns from a token."""

    family: Family
    expires_at: float

    @property
    def is_live(self) -> bool:
        return not self.family.ended and time.time() < self.expires_at


class Refusal(Exception):  # noqa: N818 - an answer of the protocol
    """What the token endpoint says no with."""


class Authority:
    """Grants whatever is asked for, to whoever sits in front of it."""

    def __init__(self) -> None:
        self.url = ""
        self.lifetime = 600
        self.user = "alice"
        self.asked: Counter[str] = Counter()
        self.clients: dict[str, list[str]] = {}
        self.codes: dict[str, Family] = {}
        self.tokens: dict[str, AccessToken] = {}
        self.families: list[Family] = []
        # The scopes of every authorization request, in order.
        self.requested: list[str] = []
        # What each sign-in is known by: a browser that opens the same address again begins none.
        self.states: set[str] = set()
        # As RFC 8252 has it for addresses of this machine; many compare whole addresses.
        self.takes_any_port = False
        # Whether its answers name it (RFC 9207), and whether it takes addresses of documents for clients' ids.
        self.says_iss = True
        self.takes_documents = False
        # Where it sends browsers instead, by what they were sent with.
        self.passes_on: Callable[[Mapping[str, str]], str] | None = None
        # Instead of an answer of the token endpoint.
        self.away: tuple[int, bytes] | None = None
        self._lock = Lock()

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "revocation_endpoint": f"{self.url}/revoke",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": self.says_iss,
            "client_id_metadata_document_supported": self.takes_documents,
        }

    def verify(self, token: str) -> Family | None:
        """Whose token this is, if it is good now."""
        known = self.tokens.get(token)
        return known.family if known is not None and known.is_live else None

    def register(self, body: Mapping[str, Any]) -> dict[str, Any]:
        client = f"client-{secrets.token_hex(4)}"
        self.clients[client] = list(body["redirect_uris"])
        return {"client_id": client, "token_endpoint_auth_method": "none", "redirect_uris": body["redirect_uris"]}

    def authorize(self, query: Mapping[str, str]) -> str:
        """Where the browser is sent."""
        if self.passes_on is not None:
            return self.passes_on(query)
        redirect = query["redirect_uri"]
        assert self._is_registered(redirect, query["client_id"]), "another redirect than the registered one"
        assert query["code_challenge_method"] == "S256"
        self.requested.append(query.get("scope", ""))
        self.states.add(query["state"])
        code = secrets.token_urlsafe(16)
        self.codes[code] = Family(
            self.user,
            query["client_id"],
            tuple(query.get("scope", "").split()),
            query.get("resource"),
            redirect,
            query["code_challenge"],
        )
        answer = {"code": code, "state": query["state"]} | ({"iss": self.url} if self.says_iss else {})
        return f"{redirect}?{urlencode(answer)}"

    def answer(self, form: Mapping[str, str]) -> dict[str, Any]:
        """What the token endpoint gives, or a refusal."""
        with self._lock:
            match form["grant_type"]:
                case "authorization_code":
                    return self._issue(self._redeem(form))
                case "refresh_token":
                    return self._issue(self._rotate(form))
                case "client_credentials":
                    return self._issue(Family("a machine", "", tuple(form.get("scope", "").split()), None))
                case _:
                    raise Refusal("unsupported_grant_type")

    def revoke(self, token: str) -> None:
        for family in self.families:
            if family.refresh == token or (token in self.tokens and self.tokens[token].family is family):
                family.ended = True

    def _is_registered(self, redirect: str, client: str) -> bool:
        if not self.takes_any_port:
            return redirect in self.clients[client]
        return _without_port(redirect) in map(_without_port, self.clients[client])

    def _redeem(self, form: Mapping[str, str]) -> Family:
        family = self.codes.pop(form["code"], None)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        proof = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if family is None or proof != family.challenge or form["redirect_uri"] != family.redirect_uri:
            raise Refusal("invalid_grant")
        self.families.append(family)
        return family

    def _rotate(self, form: Mapping[str, str]) -> Family:
        given = form["refresh_token"]
        for family in self.families:
            if given in family.used:
                # As RFC 9700 wants it: whoever comes second may be a thief, or the first one was.
                self.asked["reused"] += 1
                family.ended = True
        family = next((each for each in self.families if each.refresh == given and not each.ended), None)
        if family is None:
            raise Refusal("invalid_grant")
        family.used.add(given)
        return family

    def _issue(self, family: Family) -> dict[str, Any]:
        token, family.refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.tokens[token] = AccessToken(family, time.time() + self.lifetime)
        return {
            "access_token": token,
            "token_type": "Bearer",
            "expires_in": self.lifetime,
            "refresh_token": family.refresh,
            **({"scope": " ".join(family.scopes)} if family.scopes else {}),
        }


def _without_port(url: str) -> tuple[str | None, str]:
    parts = urlsplit(url)
    return parts.hostname, parts.path


class AuthorityHandler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    authority: Authority

    def log_message(self, format: str, *args: Any) -> None:
        """Tests have their own log."""

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        prefix = urlsplit(self.authority.url).path
        if place.path == f"{WELL_KNOWN}{prefix}":
            self.authority.asked["metadata"] += 1
            self._send(200, self.authority.metadata())
        elif place.path == f"{prefix}/authorize":
            self.authority.asked["authorize"] += 1
            query = {name: values[0] for name, values in parse_qs(place.query).items()}
            self._send(302, {}, location=self.authority.authorize(query))
        else:
            self._send(404, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        match self.path.removeprefix(urlsplit(self.authority.url).path):
            case "/register":
                self.authority.asked["register"] += 1
                self._send(201, self.authority.register(json.loads(body)))
            case "/token":
                self._token(dict(parse_qsl(body)))
            case "/revoke":
                self.authority.asked["revoke"] += 1
                self.authority.revoke(dict(parse_qsl(body))["token"])
                self._send(200, {})
            case _:
                self._send(404, {})

    def _token(self, form: Mapping[str, str]) -> None:
        self.authority.asked[form["grant_type"]] += 1
        if self.authority.away is not None:
            status, text = self.authority.away
            self._send_text(status, text)
            return
        try:
            self._send(200, self.authority.answer(form))
        except Refusal as refusal:
            self.authority.asked[str(refusal)] += 1
            self._send(400, {"error": str(refusal)})

    def _send(self, status: int, body: Mapping[str, Any], **headers: str) -> None:
        self._send_text(status, json.dumps(body).encode(), **headers)

    def _send_text(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def open_authority(path: str = "") -> Generator[Authority]:
    """One that listens, with an issuer that may have a path."""
    authority = Authority()
    handler = type("Handler", (AuthorityHandler,), {"authority": authority})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    authority.url = f"http://127.0.0.1:{server.server_port}{path}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield authority
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
