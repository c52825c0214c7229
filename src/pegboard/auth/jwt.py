"""JSON Web Tokens (RFC 7519) as access tokens (RFC 9068): taken apart, judged by their claims, verified.

Nothing in a token says where keys are: `jku`, `x5u` and `jwk` are not looked at.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pegboard.access.settings import IssuerSettings
from pegboard.auth.jwks import IssuerKey
from pegboard.auth.refused import invalid_token

# How far clocks may be apart, in seconds.
LEEWAY = 60.0
# A client counts from when a token came, and its issuer from the last whole second before: in between, some clients
# take a refusal for the end of the grant, and have their user sign in again.
_GRACE = 2.0
_MAX_HEADER = 4096
_MAX_NAME = 512
_MOST_NAMES = 1000
_FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
# What no name has in it: it is shown to people and written to logs, and principals are told apart by their names with
# NUL in between.
_UNWRITABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_TYPES = frozenset({"at+jwt", "jwt", ""})
# What says that a token is about a sign-in, or about its end: it is for the client, and not to be sent to anybody.
_ID_CLAIMS = ("at_hash", "c_hash", "s_hash", "events")
# How some issuers name the kind of a token in a claim of their own.
_OTHER_KINDS = frozenset({"id", "refresh", "offline", "logout"})
_CLIENT_CLAIMS = ("client_id", "azp", "appid", "cid")


@dataclass(frozen=True, slots=True)
class Jwt:
    """A token whose signature nobody has looked at yet."""

    text: str
    algorithm: str
    kid: str | None
    kind: str
    claims: Mapping[str, Any]

    @property
    def issuer(self) -> str:
        """Who it says has issued it."""
        return _text(self.claims.get("iss"))

    @property
    def expires_at(self) -> float:
        """From when on it is refused, in seconds since 1970."""
        return (_moment(self.claims, "exp") or 0.0) + _GRACE

    @property
    def audience(self) -> frozenset[str]:
        """Whom it is for."""
        return frozenset(_texts(self.claims.get("aud")))

    @property
    def client_id(self) -> str:
        """The client that it was issued to, as far as it says."""
        return next((found for name in _CLIENT_CLAIMS if (found := _text(self.claims.get(name)))), "")

    @property
    def scopes(self) -> frozenset[str]:
        """What it was issued for."""
        given = self.claims.get("scope")
        return frozenset(_words(self.claims.get("scp") if given is None else given))

    def subject(self, settings: IssuerSettings) -> str:
        """Whom it stands for."""
        subject = _text(_claim(self.claims, settings.subject))
        if not 0 < len(subject) <= _MAX_NAME or _UNWRITABLE.search(subject + self.client_id):
            raise invalid_token(f"the token has no claim {settings.subject} that names its subject")
        return subject

    def groups(self, settings: IssuerSettings) -> list[str]:
        """The groups of its subject."""
        return _words(_claim(self.claims, settings.groups))

    def check(self, settings: IssuerSettings, now: float) -> None:
        """`AuthRefused` where it could not be taken whatever its signature is."""
        if self.algorithm not in settings.algorithms:
            raise invalid_token(f"the token is signed in a way that is not taken: use {', '.join(settings.algorithms)}")
        if "exp" not in self.claims:
            raise invalid_token("the token does not say when it expires (exp)")
        not_before, issued_at = _moment(self.claims, "nbf"), _moment(self.claims, "iat")
        if now >= self.expires_at:
            raise invalid_token("the token has expired")
        if max(not_before or 0.0, issued_at or 0.0) > now + LEEWAY:
            raise invalid_token("the token is not valid yet (nbf, iat): is the clock right?")
        if self._is_no_access_token():
            raise invalid_token("this is no access token: an ID token is for the client alone")

    def _is_no_access_token(self) -> bool:
        """By the header, if that says so (RFC 9068); else by what only other tokens have."""
        if self.kind == "at+jwt":
            return False
        claims = self.claims
        kinds = {_text(claims.get(name)).lower() for name in ("typ", "token_use")}
        if any(name in claims for name in _ID_CLAIMS) or not kinds.isdisjoint(_OTHER_KINDS):
            return True
        if "scope" in claims or "scp" in claims:
            return False
        return "nonce" in claims or self.audience == frozenset({self.client_id})


def is_jwt(text: str) -> bool:
    """Whether a bearer has the form of a JWT."""
    return _FORM.fullmatch(text) is not None


def parse_jwt(text: str) -> Jwt:
    """A token taken apart; `AuthRefused` where that cannot be."""
    head, body, _ = text.split(".")
    if len(head) > _MAX_HEADER:
        raise invalid_token("the head of the token is too long")
    header, claims = _json(head), _json(body)
    if header is None or claims is None:
        raise invalid_token("the bearer token cannot be read: is it whole?")
    kid, kind = header.get("kid"), _text(header.get("typ")).lower().removeprefix("application/")
    if "crit" in header or "b64" in header or not isinstance(kid, (str, type(None))):
        raise invalid_token("the head of the token asks for what is not done here")
    if kind not in _TYPES or not isinstance(header.get("typ", ""), str):
        raise invalid_token("this is no access token: its typ must be at+jwt or JWT")
    return Jwt(text, _text(header.get("alg")), kid, kind, claims)


def verify_signature(token: Jwt, keys: Iterable[IssuerKey]) -> bool:
    """Whether one of these keys has signed a token. Not for the event loop: PyJWT is loaded when it is first needed."""
    import jwt

    for each in keys:
        if (key := each.load(token.algorithm)) is None:
            continue
        try:
            jwt.PyJWS().decode(token.text, key, algorithms=[token.algorithm])
        except jwt.PyJWTError:
            continue
        return True
    return False


def _json(part: str) -> dict[str, Any] | None:
    try:
        value = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _moment(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e12:
        raise invalid_token(f"the claim {name} of the token is no time")
    return float(value)


def _claim(claims: Mapping[str, Any], name: str) -> object:
    """The claim of a name; dots lead into objects, unless there is a claim of the very name."""
    if name in claims:
        return claims[name]
    value: object = claims
    for step in name.split("."):
        if not isinstance(value, Mapping):
            return None
        value = cast("Mapping[str, object]", value).get(step)
    return value


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> list[str]:
    """A text, or a list of texts."""
    if isinstance(value, str):
        return [value]
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return [each for each in listed[:_MOST_NAMES] if isinstance(each, str)]


def _words(value: object) -> list[str]:
    """A list of texts, or one text with spaces between them."""
    return value.split()[:_MOST_NAMES] if isinstance(value, str) else _texts(value)
