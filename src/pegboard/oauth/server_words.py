"""What an authorization server says of an error, in its own words, as a message may have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MOST = 300


def error_of_answer(members: Mapping[str, Any]) -> str:
    """The code of an error, or nothing."""
    error = members.get("error")
    return error if isinstance(error, str) else ""


def describe_error(members: Mapping[str, Any]) -> str:
    """Code and description of an error in one line, cut where they are long."""
    description = members.get("error_description")
    words = [error_of_answer(members), description if isinstance(description, str) else ""]
    return ": ".join(_one_line(word) for word in words if word.strip())


def _one_line(text: str) -> str:
    shown = " ".join("".join(each if each.isprintable() else " " for each in text[: 4 * _MOST]).split())
    return shown if len(shown) <= _MOST else f"{shown[:_MOST]}…"
