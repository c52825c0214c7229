"""What somebody who reviews a change may want to know of its words. None of it decides anything: poison is mostly plain
English, and plain English is mostly no poison."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pegboard import exactjson
from pegboard.hidden_text import describe_hidden_text, explain_hidden_text
from pegboard.pins.change import are_alike

_MOST_NOTES = 10
# A shorter name, or one that is a plain word, is in many texts by chance.
_LEAST_NAME = 6
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]+")
_PHRASES = re.compile(
    r"<\s*important\s*>|\bdo not (?:tell|mention|inform|reveal)\b|\bwithout (?:telling|asking|informing) the user\b"
    r"|\bignore (?:all |any )?(?:previous|prior|other) instructions\b|~/\.ssh|\bid_rsa\b|\bsystem prompt\b"
    r"|\bbefore (?:using|calling) (?:any|this|other)\b.{0,40}\btools?\b|\bexfiltrat",
    re.IGNORECASE,
)


def find_notes(server: str, definition: Any, others: Mapping[str, tuple[str, Any]]) -> list[str]:
    """Remarks about a definition. `others` are tools of other servers by their own names: the server, the tool."""
    found = list(_notes(server, definition, others))
    return found[:_MOST_NOTES]


def find_suspicions(definition: Any) -> list[str]:
    """Those remarks that take nothing but its own words."""
    problem = explain_hidden_text(definition)
    hidden = ["; ".join(filter(None, [problem, describe_hidden_text(definition)]))] if problem else []
    return [*hidden, *_quote_phrases(_all_words(definition))][:_MOST_NOTES]


def _quote_phrases(text: str) -> Iterator[str]:
    for phrase in dict.fromkeys(match[0] for match in _PHRASES.finditer(text)):
        yield f'it says "{phrase[:60]}"'


def _notes(server: str, definition: Any, others: Mapping[str, tuple[str, Any]]) -> Iterator[str]:
    members = exactjson.as_object(definition) or {}
    own, text = members.get("name"), _all_words(definition)
    twin = others.get(own) if isinstance(own, str) else None
    if twin is not None and are_alike(twin[1], definition):
        yield f"it looks like a copy of {own} of server {twin[0]}"
    for word in dict.fromkeys(_WORD.findall(text)):
        if word == own or len(word) < _LEAST_NAME or not ("_" in word or "-" in word):
            continue
        if (known := others.get(word.rpartition("__")[2])) is not None and known[0] != server:
            yield f"it names {word}, a tool of server {known[0]}"


def _all_words(definition: Any) -> str:
    try:
        return exactjson.dump(definition).decode()
    except exactjson.NotJson:
        return ""
