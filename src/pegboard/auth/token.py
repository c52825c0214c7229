"""A static token: `pgb_`, an id, and 256 random bits. What is kept of it is a digest, so that nothing on disk lets
anybody in."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field

from pegboard.access.rule import Rule

PREFIX = "pgb_"
_TEXT = re.compile(r"pgb_([0-9a-z]{12})_([A-Za-z0-9_-]{43})")
_ID_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
NAME_HINT = "a token's name has letters, digits, '_', '-', '.' and '@', and begins with a letter or a digit, 64 at most"


@dataclass(frozen=True, slots=True)
class StaticToken:
    """What is known of a token. Times are in seconds since 1970."""

    id: str
    name: str
    # A plain SHA-256: what is random to 256 bits needs no slow one.
    digest: bytes = field(repr=False)
    rule: Rule = field(default_factory=Rule)
    created_at: float = 0.0
    expires_at: float | None = None
    last_used_at: float | None = None
    # Why it lets nobody in: what is kept of its rule cannot be read.
    problem: str = ""

    def is_expired(self, now: float) -> bool:
        """Whether it has expired by then."""
        return self.expires_at is not None and now >= self.expires_at

    def fits(self, text: str) -> bool:
        """Whether this is the token of that text, in a time that tells nothing."""
        return hmac.compare_digest(self.digest, digest_of(text))


def new_token_text(token_id: str = "") -> tuple[str, str]:
    """The id of a new token, or of one that gets another secret, and its text, which is shown once."""
    token_id = token_id or "".join(secrets.choice(_ID_LETTERS) for _ in range(12))
    return token_id, f"{PREFIX}{token_id}_{secrets.token_urlsafe(32)}"


def is_token_name(text: str) -> bool:
    """Whether a token can have this name."""
    return _NAME.fullmatch(text) is not None


def token_id_of(text: str) -> str | None:
    """The id that stands in a token; `None` if it has not the form of one."""
    match = _TEXT.fullmatch(text)
    return None if match is None else match[1]


def has_token(text: str) -> bool:
    """Whether something in a text has the form of a token."""
    return PREFIX in text and _TEXT.search(text) is not None


def digest_of(text: str) -> bytes:
    """What is kept of a token."""
    return hashlib.sha256(text.encode()).digest()
