"""The addresses of ours that each authorization server has for itself: where its answers go, and where it reads who we
are.

An authorization server that somebody was led to can send the browser on to another one, and have that one's code
brought here as if it were its own: the code would be sent to the wrong token endpoint (mix-up, RFC 9700, section 4.4).
Not every server says who it is in its answer (`iss`, RFC 9207). But each sends its answers to the redirect that it
knows for us, so an answer that comes to the address of another one than was asked is refused.
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import urlsplit

CLIENT_DOCUMENTS = "/oauth/client"
# Enough that nobody finds an issuer with the same one.
_DIGITS = 24
_KEY = re.compile(rf"[0-9a-f]{{{_DIGITS}}}")


def issuer_key(issuer: str) -> str:
    """The word for an issuer that stands at the end of an address."""
    return hashlib.sha256(issuer.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def is_issuer_key(text: str) -> bool:
    """Whether a text may be such a word."""
    return _KEY.fullmatch(text) is not None


def redirect_for(base: str, issuer: str) -> str:
    """The redirect for the clients of one issuer, where it is ours to choose."""
    return f"{base}/{issuer_key(issuer)}"


def document_path(key: str) -> str:
    """Where the gateway describes itself as a client, with that redirect alone; with an empty key, for all."""
    return f"{CLIENT_DOCUMENTS}/{key}.json" if key else f"{CLIENT_DOCUMENTS}.json"


def base_of(redirect_uri: str, issuer: str) -> str:
    """The part of a redirect that is the same for all issuers."""
    return redirect_uri.removesuffix(f"/{issuer_key(issuer)}")


def key_in(redirect_uri: str) -> str:
    """The issuer's word at the end of an address; empty where it is for all."""
    last = urlsplit(redirect_uri).path.rpartition("/")[2]
    return last if is_issuer_key(last) else ""
