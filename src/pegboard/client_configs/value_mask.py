"""The text of a config file with its values masked: the names in it can be read, and nothing that stands behind them.

Nobody can tell from outside which of the values are secret. So all are masked but those that are known to be harmless.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import cast

from pegboard.client_configs.program import FileFormat
from pegboard.config.secrets import hide_secrets
from pegboard.exactjson import as_object

MASK = "…"
_PUBLIC = frozenset({"true", "false", "null"})
_LINE = re.compile(r"[^\r\n]+")
# What is never closed goes to the end, so that nothing is read twice.
_COMMENT = r"//[^\r\n]*+|/\*[\s\S]*?(?:\*/|\Z)"
_JSON_PART = re.compile(
    rf"(?P<comment>{_COMMENT})"
    rf'|(?P<text>"(?:[^"\\]++|\\[\s\S])*+"?+)(?P<key>(?=(?:\s++|{_COMMENT})*+:))?'
    r"|(?P<word>[^\s\"{}\[\],:/]++)"
)
_TOML_PART = re.compile(
    r"(?P<comment>\#[^\r\n]*+)"
    r'|(?:(?P<text>"""(?:[^"\\]++|\\[\s\S]|"{1,2}+(?!"))*+(?:"{3,5})?+|"(?:[^"\\\r\n]++|\\.)*+"?+'
    r"|'''(?:[^']++|'{1,2}+(?!'))*+(?:'{3,5})?+|'[^'\r\n]*+'?+)"
    r"|(?P<word>[^\s\"'\[\]{},=#]++))(?P<key>(?=[ \t]*+=))?"
    r"|(?P<sign>[\[\]{}=\n])"
)


def find_comments(text: str, file_format: FileFormat) -> list[str]:
    """The comments of a text, in their order."""
    parts = (_TOML_PART if file_format == "toml" else _JSON_PART).finditer(text)
    return [part["comment"] for part in parts if part["comment"] is not None]


def mask_values(text: str, file_format: FileFormat, shown: Collection[str] = ()) -> str:
    """The text, line by line, with `…` for each value and comment; values that are written like one of `shown` stay."""
    if file_format == "toml":
        return _TOML_PART.sub(_TomlMask(shown).mask, text)
    return _JSON_PART.sub(lambda part: _mask(part, shown, is_name=part["key"] is not None), text)


def literals(value: object) -> Iterator[str]:
    """Each text and number of a value, as it is written."""
    if isinstance(value, list):
        for item in cast("list[object]", value):
            yield from literals(item)
    elif (members := as_object(value)) is not None:
        yield from literals(list(members.values()))
    else:
        yield json.dumps(value, ensure_ascii=False)


class _TomlMask:
    """Where in a TOML text we are: what stands before a `=`, or in the header of a table, is a name."""

    def __init__(self, shown: Collection[str]) -> None:
        self._shown = shown
        self._is_value = False
        self._depth = 0

    def mask(self, part: re.Match[str]) -> str:
        """What stands in the place of a part; they come in order."""
        if part["sign"] is None:
            return _mask(part, self._shown, is_name=part["key"] is not None or not self._is_value)
        self._follow(part["sign"])
        return part.group()

    def _follow(self, sign: str) -> None:
        """An array or an inline table ends where it is closed, any other value with its line."""
        if sign == "=":
            self._is_value = True
        elif sign == "\n":
            self._is_value = self._depth > 0
        elif self._is_value:
            self._depth += 1 if sign in "[{" else -1


def _mask(part: re.Match[str], shown: Collection[str], *, is_name: bool) -> str:
    written = part.group()
    if part["comment"] is not None:
        return _mask_comment(written)
    if is_name:
        # A name may be an address, with a password in it.
        return hide_secrets(written)
    if written in shown or written in _PUBLIC:
        return written
    if part["word"] is not None or "\n" in written:
        return _LINE.sub(MASK, written)
    return f"{written[0]}{MASK}{written[0]}"


def _mask_comment(written: str) -> str:
    opening = "#" if written.startswith("#") else written[:2]
    inner, closing = (written[2:-2], " */") if opening == "/*" else (written[len(opening) :], "")
    return f"{opening} {_LINE.sub(MASK, inner)}{closing}"
