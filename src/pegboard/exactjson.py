"""JSON in and out without loss: integers of any size, nulls, key order, every character.

The parser bounds nesting at 200 levels by itself, so that a hostile answer cannot exhaust the stack.
"""

from __future__ import annotations

import json
from typing import Any, cast

from pydantic_core import from_json, to_json


class NotJson(ValueError):  # noqa: N818  it says what the text is
    """The text is not JSON, or not JSON that can be carried on."""


def parse(text: bytes | str) -> Any:
    """The value a JSON text stands for."""
    try:
        return from_json(text)
    except ValueError as exc:
        # JavaScript writes half of a cut emoji as a lone surrogate escape, which is legal JSON;
        # no UTF-8 wire can carry it further, so it becomes U+FFFD, as in every browser.
        if b"\\ud" in (text.encode() if isinstance(text, str) else text).lower():
            return _parse_with_lone_surrogates(text)
        raise NotJson(str(exc)) from None


def parse_object(text: bytes | str) -> dict[str, Any]:
    """The object a JSON text stands for; anything else is an error."""
    value = as_object(parse(text))
    if value is None:
        raise NotJson("expected a JSON object")
    return value


def as_object(value: object) -> dict[str, Any] | None:
    """The value, if it is an object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_list(value: object) -> list[Any] | None:
    """The value, if it is a list."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def dump(value: Any) -> bytes:
    """The shortest JSON text of a value, in UTF-8."""
    try:
        return to_json(value)
    except ValueError as exc:
        raise NotJson(str(exc)) from None


def _parse_with_lone_surrogates(text: bytes | str) -> Any:
    try:
        value = json.loads(text)
        repaired = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace_lone_surrogates")
        return from_json(repaired)
    except (ValueError, RecursionError) as exc:
        raise NotJson(str(exc)) from None


def _replace(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return "\N{REPLACEMENT CHARACTER}" * (error.end - error.start), error.end


def _register_replacement() -> None:
    import codecs

    codecs.register_error("replace_lone_surrogates", _replace)


_register_replacement()
