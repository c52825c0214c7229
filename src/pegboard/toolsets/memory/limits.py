"""What may be written down: keys, texts and links that both databases can keep."""

from __future__ import annotations

from collections.abc import Iterable

from pegboard.names import MAX_NAMESPACE, key_problem
from pegboard.normalization import normalize
from pegboard.result import invalid
from pegboard.toolsets.memory.memory import Link
from pegboard.toolsets.validation import validate_text

MAX_KEY, MAX_SUMMARY, MAX_TEXT = 512, 4_000, 200_000
MAX_LINKS, MAX_TYPE, MAX_TERM = 500, 64, 200
# A pasted document; its first pages say what it is about.
MAX_QUERY = 200_000
MAX_KEYWORDS = 64
# No list is that long, and both databases can count so far.


def validate_key(key: str, parameter: str = "key", most: int = MAX_KEY) -> str:
    """A key as it is kept, or a clear refusal. Composed: an accent is a part of its letter, however it was typed."""
    composed = normalize("NFC", key)
    # As it is given first: that is what the tools' schemas count.
    if problem := key_problem(key, most) or key_problem(composed, most):
        raise invalid(f"{parameter} {problem}")
    return composed


def validate_namespace(namespace: str) -> str:
    """A namespace as it is kept, or a clear refusal."""
    return validate_key(namespace, "namespace", MAX_NAMESPACE)


def validate_links(links: Iterable[Link]) -> list[Link]:
    """Links that can be kept; of two to the same memory and of the same type the last one counts."""
    given = list(links)
    if len(given) > MAX_LINKS:
        raise invalid(f"links: a memory has {MAX_LINKS} at most, found {len(given)}")
    found: dict[tuple[str, str], Link] = {}
    for link in given:
        key = validate_key(link.key, "links: key")
        kind = validate_key(link.type, "links: type", MAX_TYPE)
        validate_text(link.term, "links: term", MAX_TERM)
        if not 0 <= link.weight <= 1:
            raise invalid(f"links: weight must be between 0 and 1, found {link.weight}")
        found[key, kind] = Link(key, kind, link.term, link.weight)
    return list(found.values())
