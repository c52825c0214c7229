"""What may be written down: keys, texts and links that both databases can keep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from unicodedata import normalize

from pegboard.names import MAX_NAMESPACE, key_problem
from pegboard.result import invalid
from pegboard.toolsets.memory.memory import Link

MAX_KEY, MAX_SUMMARY, MAX_TEXT = 512, 4_000, 200_000
MAX_LINKS, MAX_TYPE, MAX_TERM = 500, 64, 200
# A pasted document; its first pages say what it is about.
MAX_QUERY = 200_000
# No list is that long, and both databases can count so far.
MAX_OFFSET = 2**53


def checked_key(key: str, parameter: str = "key", most: int = MAX_KEY) -> str:
    """A key as it is kept, or a clear refusal. Composed: an accent is a part of its letter, however it was typed."""
    composed = normalize("NFC", key)
    # As it is given first: that is what the tools' schemas count.
    if problem := key_problem(key, most) or key_problem(composed, most):
        raise invalid(f"{parameter} {problem}")
    return composed


def checked_namespace(namespace: str) -> str:
    """A namespace as it is kept, or a clear refusal."""
    return checked_key(namespace, "namespace", MAX_NAMESPACE)


def checked_text(text: str, parameter: str, most: int) -> str:
    """A text that can be kept, or a clear refusal."""
    if len(text) > most:
        hint = "; write several memories and link them" if parameter == "text" else ""
        raise invalid(f"{parameter} has {len(text):,} characters, {most:,} is the most{hint}")
    if "\0" in text:
        raise invalid(f"{parameter} must not contain NUL characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise invalid(f"{parameter} is not valid Unicode: it contains half of a surrogate pair") from None
    return text


def checked_number(number: float, parameter: str, least: int, most: int) -> int:
    """A whole number within bounds, or a clear refusal. JSON tells no 10 from 10.0."""
    whole = int(number) if isinstance(number, int) or number.is_integer() else None
    if whole is None or isinstance(number, bool) or not least <= whole <= most:
        raise invalid(f"{parameter} must be a whole number between {least} and {most}, found {number}")
    return whole


def checked_choice(word: str, parameter: str, choices: Sequence[str]) -> str:
    """One of these words, or a clear refusal."""
    if word not in choices:
        raise invalid(f"{parameter} must be one of {', '.join(choices)}, found {word[:40]!r}")
    return word


def checked_links(links: Iterable[Link]) -> list[Link]:
    """Links that can be kept; of two to the same memory and of the same type the last one counts."""
    found: dict[tuple[str, str], Link] = {}
    for link in links:
        key = checked_key(link.key, "links: key")
        kind = checked_key(link.type, "links: type", MAX_TYPE)
        checked_text(link.term, "links: term", MAX_TERM)
        if not 0 <= link.weight <= 1:
            raise invalid(f"links: weight must be between 0 and 1, found {link.weight}")
        found[key, kind] = Link(key, kind, link.term, link.weight)
    if len(found) > MAX_LINKS:
        raise invalid(f"links: a memory has {MAX_LINKS} at most, found {len(found)}")
    return list(found.values())
