"""Proof that somebody knows the secret of a run file, without saying it. Nothing but the standard library.

A gateway that was killed leaves its run file behind, and its port may be anybody's by then: whoever asks it something
lets it prove first that it is the one that wrote the file. Each purpose signs its own words, so that no answer serves
another.
"""

from __future__ import annotations

import hmac

CHALLENGE_HEADER = "x-pegboard-challenge"
MAX_CHALLENGE = 64


def prove(token: str, purpose: str, challenge: bytes) -> bytes:
    """The answer to a challenge: an HMAC that only an owner of the secret can make."""
    return hmac.new(token.encode(), purpose.encode() + b" " + challenge, "sha256").hexdigest().encode()


def http_purpose(port: int) -> str:
    """What is proven over HTTP: that the gateway of this very port answers."""
    return f"http {port}"
