"""SQL with `?` for each value as psycopg wants it."""

from __future__ import annotations

import re
from functools import lru_cache

_PARTS = re.compile(
    r"""
    (?<![\w$])[eE]'(?:[^'\\]|\\.|'')*'      # a text with escapes
    | '[^']*' | "[^"]*"                     # a text, a name; a doubled quote is two that touch
    | --[^\n]* | /\*.*?\*/                  # comments
    | (?P<tag>\$(?:[A-Za-z_]\w*)?\$).*?(?P=tag)
    | \? | %
    """,
    re.VERBOSE | re.DOTALL,
)


@lru_cache(maxsize=1024)
def with_percents(sql: str) -> bytes:
    """Each `?` that stands for a value is `%s`; each `%` is doubled, as one of ours never stands for anything."""
    return _PARTS.sub(_replace, sql).encode()


def _replace(part: re.Match[str]) -> str:
    return "%s" if part.group() == "?" else part.group().replace("%", "%%")
