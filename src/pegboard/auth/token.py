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
MAX_NAME = 64


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

    def fits(self, text: str) -> bool:
        """Whether this is the token of that text, in a time that tells nothing."""
        return hmac.compare_digest(self.digest, digest_of(text))


def new_token_text() -> tuple[str, str]:
    """The id of a new token, and its text, which is shown once."""
    token_id = "".join(secrets.choice(_ID_LETTERS) for _ in range(12))
    return token_id, f"{PREFIX}{token_id}_{secrets.token_urlsafe(32)}"


def token_id_of(text: str) -> str | None:
    """The id that stands in a token; `None` if it has not the form of one."""
    match = _TEXT.fullmatch(text)
    return None if match is None else match[1]


def digest_of(text: str) -> bytes:
    """What is kept of a token."""
    return hashlib.sha256(text.encode()).digest()
