"""Proof of a command that it knows the secret of a gateway's run file, without saying it: it is the user's own.

It is sent with each request, is good for a minute, and for the gateway of one port alone: whoever else listens there by
then can do nothing with it.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Iterable

PROOF_HEADER = "x-pegboard-proof"
_NAME = PROOF_HEADER.encode()
_LIFETIME = 60.0
_LONGEST = 256


def make_proof(secret: str, port: int) -> str:
    """The value of the header for a request to the gateway of this port."""
    moment = f"{int(time.time())}.{secrets.token_hex(8)}"
    return f"{moment}.{_sign(secret, port, moment)}"


def is_proven(headers: Iterable[tuple[bytes, bytes]], secret: str, server: tuple[str, int] | None) -> bool:
    """Whether a request comes from somebody who knows the secret."""
    given = [value for name, value in headers if name == _NAME]
    if len(given) != 1 or server is None or len(given[0]) > _LONGEST:
        return False
    moment, _, signature = given[0].decode("latin-1").rpartition(".")
    seconds = moment.partition(".")[0]
    if not (seconds.isascii() and seconds.isdigit()) or abs(time.time() - int(seconds)) > _LIFETIME:
        return False
    return hmac.compare_digest(signature.encode("latin-1"), _sign(secret, server[1], moment).encode())


def _sign(secret: str, port: int, moment: str) -> str:
    return hmac.new(secret.encode(), f"command {port} {moment}".encode("latin-1"), "sha256").hexdigest()
