"""Headers that come more than once."""

from __future__ import annotations

from collections.abc import Mapping

# Those of which all count, and what stands between them.
_JOINED: Mapping[str, str] = {"set-cookie": "\n", "www-authenticate": ", "}


def join_header(name: str, before: str | None, value: str) -> str:
    """What a header says, with the one of the same name before it: the first counts, but all cookies and challenges."""
    if before is None:
        return value
    return f"{before}{_JOINED[name]}{value}" if name in _JOINED else before
