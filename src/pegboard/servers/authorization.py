"""The authorization of a server: which credentials its requests carry, and what it says of those that it refuses.

Who makes an `Authorization` and where its tokens come from is no business of the servers: they know this interface.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from pegboard.config import ServerSpec

# Characters of `WWW-Authenticate` that are read: more is no challenge.
_MAX_HEADER = 16 * 1024
# Schemes whose tokens are had by a sign-in (RFC 6750, RFC 9449), the better known one first.
_SIGN_IN_SCHEMES = ("bearer", "dpop")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_EQUALS = re.compile(r"[ \t]*=[ \t]*")
_BETWEEN = re.compile(r"[ \t,]*")
# A quoted string; one that is not closed ends with the header.
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)(?:"|\\?$)', re.DOTALL)
_PAIR = re.compile(r"\\(.)", re.DOTALL)
# What a parameter without quotes has as its value: servers write addresses so, though these are no tokens.
_BARE = re.compile(r"[^ \t,\"]*")
# Credentials in place of parameters (RFC 9110 11.2): nothing that would concern us.
_TOKEN68 = re.compile(r"[ \t]+[A-Za-z0-9\-._~+/]+=*(?=[ \t]*(?:,|$))")


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a 401 or 403 says: RFC 6750, RFC 9728."""

    status: int
    # Whether it names a scheme whose tokens are had by a sign-in.
    scheme_seen: bool = False
    error: str | None = None
    scope: str | None = None
    resource_metadata: str | None = None

    @classmethod
    def of(cls, status: int, headers: Mapping[str, str]) -> Challenge:
        """The challenge of a response, whose headers are named in lower case; repeated ones are joined by commas."""
        challenges = read_challenges(headers.get("www-authenticate", ""))
        for wanted in _SIGN_IN_SCHEMES:
            for scheme, params in challenges:
                if scheme == wanted:
                    said = (params.get(key) or None for key in ("error", "scope", "resource_metadata"))
                    return cls(status, True, *said)
        return cls(status)

    @property
    def wants_scopes(self) -> bool:
        """Whether the token is good, but not for this."""
        return self.status == 403 and self.error == "insufficient_scope"

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that it names."""
        return tuple(dict.fromkeys((self.scope or "").split()))


@dataclass(frozen=True, slots=True)
class SignInNeed:
    """Why somebody has to sign in, and for which scopes."""

    reason: Literal["never", "expired", "revoked", "scope", "client"]
    scopes: tuple[str, ...] = ()


class Authorization(Protocol):
    """The credentials of one server for one principal, or for the gateway."""

    @property
    def header(self) -> str | None:
        """The value of `Authorization` for the next request; `None`: it goes without."""
        ...

    @property
    def is_fresh(self) -> bool:
        """Whether `header` can be used at once; cheap, since the fast path asks before each call."""
        ...

    @property
    def version(self) -> int:
        """Changes whenever `header` does."""
        ...

    async def prepare(self) -> None:
        """Before a request where `header` is not fresh: load the grant, and renew it if it has expired.

        Never raises because a grant is missing.
        """
        ...

    async def renew(self, challenge: Challenge, used: str | None) -> bool:
        """A request that was sent with `used` was refused: whether it is worth sending once more, with what `header`
        is now. The challenge is noted, so that a later sign-in knows scope and resource metadata."""
        ...

    def needs_sign_in(self) -> SignInNeed | None:
        """Why somebody has to sign in before `header` can be of use, or `None`."""
        ...


# The authorization of a server for a principal's id; `None` where the server has none. An empty id means the gateway's
# own grant and no other's. No id (`None`) is what the one connection of a server with `per: gateway` asks with; with
# `per: user` it is asked for lists alone, never for a call: then it may be the grant of any principal that has one.
Authorize = Callable[[ServerSpec, str | None], Authorization | None]


def read_challenges(header: str) -> list[tuple[str, dict[str, str]]]:
    """The challenges of a `WWW-Authenticate` header: schemes and names of parameters in lower case, in their order."""
    text = header[:_MAX_HEADER]
    challenges: list[tuple[str, dict[str, str]]] = []
    place, end = 0, len(text)
    while place < end:
        place = _skip(_BETWEEN, text, place)
        word = _TOKEN.match(text, place)
        if word is None:
            # Not a challenge: what follows the next comma may be one.
            comma = text.find(",", place)
            place = end if comma < 0 else comma + 1
            continue
        place = word.end()
        equals = _EQUALS.match(text, place)
        if equals is None:
            challenges.append((word[0].lower(), {}))
            place = _skip(_TOKEN68, text, place)
            continue
        value, place = _value(text, equals.end())
        if challenges:
            challenges[-1][1].setdefault(word[0].lower(), value)
    return challenges


def _skip(pattern: re.Pattern[str], text: str, place: int) -> int:
    found = pattern.match(text, place)
    return found.end() if found else place


def _value(text: str, place: int) -> tuple[str, int]:
    if quoted := _QUOTED.match(text, place):
        return _PAIR.sub(r"\1", quoted[1]), quoted.end()
    bare = _BARE.match(text, place)
    assert bare is not None
    return bare[0], bare.end()
