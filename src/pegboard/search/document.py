"""A tool as the index sees it: texts by field, and from them a weight for every term.

Nothing here depends on other tools. So a document is weighed once, and what other tools come and go changes only the
inverse document frequencies, which are looked up when a query comes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import cast

from pegboard import names
from pegboard.search.tokens import Terms, terms


@dataclass(frozen=True, slots=True)
class Field:
    """How much a word counts in one part of a tool, and how many words that part usually has."""

    weight: float
    usual_length: float


FIELDS = {
    "name": Field(4.0, 3),
    "keywords": Field(4.0, 3),
    "description": Field(1.0, 8),
    "category": Field(1.0, 2),
    "parameter_names": Field(1.0, 3),
    "parameter_texts": Field(0.4, 20),
    "server": Field(1.0, 2),
}
# Words near each other in these say something as a phrase.
_PHRASED = ("name", "keywords", "description", "parameter_names")
# How far a field's length tempers its words, how soon more of a word stops to count, how far a wordy tool is tempered.
LENGTH, SATURATION, WORDINESS = 0.5, 1.4, 0.3
PHRASE_END = ""

_MAX_PROPERTIES = 200
_MAX_PARTS = 1000
_PREFIX_ENDS = (names.SEPARATOR, ":", "/", ".")


@dataclass(frozen=True, slots=True)
class Texts:
    """What a tool says, by field; equal texts make equal documents."""

    name: str
    server: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """The weight of each term in one tool, and the order of its words."""

    weights: dict[str, float]
    sequence: list[str]
    tempering: float


def read(tool: object, server: str | None = None) -> Texts | None:
    """The texts of a tool, be it an object or a mapping; `None` where it has no name to be found by."""
    name = _get(tool, "name")
    if not isinstance(name, str):
        return None
    server = server if server is not None else _text(_get(tool, "server"))
    own_server, own_name = _split_name(name, server)
    original = _get(tool, "original_name")
    if isinstance(original, str):
        own_name = original
    parameters = list(_parameters(_get(tool, "input_schema") or _get(tool, "inputSchema")))
    fields = {
        "name": own_name,
        "keywords": _text(_get(tool, "keywords")),
        "description": f"{_text(_get(tool, 'title'))}\n{_text(_get(tool, 'description'))}",
        "category": _text(_get(tool, "category")),
        "parameter_names": "\n".join(parameter for parameter, _ in parameters),
        "parameter_texts": "\n".join(text for _, text in parameters),
        "server": own_server,
    }
    return Texts(name, server, tuple(fields[field] for field in FIELDS))


def weigh(texts: Texts) -> Document:
    """Count and temper the terms of every field."""
    frequencies: dict[str, float] = {}
    sequence: list[str] = []
    for (name, field), text in zip(FIELDS.items(), texts.fields, strict=True):
        if not text:
            continue
        found = terms(text, stop_words=name == "name")
        _count(frequencies, found, field)
        if name in _PHRASED:
            sequence += found.sequence
            sequence.append(PHRASE_END)
    weights = {term: often / (often + SATURATION) for term, often in frequencies.items()}
    norm = math.sqrt(math.fsum(weight * weight for weight in weights.values()))
    tempering = norm**-WORDINESS if norm else 1.0
    return Document({term: weight * tempering for term, weight in weights.items()}, sequence, tempering)


def _count(frequencies: dict[str, float], found: Terms, field: Field) -> None:
    share = field.weight / (1 - LENGTH + LENGTH * len(found.sequence) / field.usual_length)
    for term in found.sequence:
        frequencies[term] = frequencies.get(term, 0.0) + share
    for term in found.aside:
        frequencies[term] = frequencies.get(term, 0.0) + share


def _get(tool: object, key: str) -> object:
    if isinstance(tool, Mapping):
        return cast("Mapping[object, object]", tool).get(key)
    return getattr(tool, key, None)


def _text(value: object) -> str:
    """A text, or the texts of a list, as one text; of anything else nothing."""
    if isinstance(value, str):
        return value
    if not isinstance(value, Iterable) or isinstance(value, bytes | Mapping):
        return ""
    texts = [item for item in cast("Iterable[object]", value) if isinstance(item, str)]
    # A set has another order in every process.
    return "\n".join(sorted(texts) if isinstance(value, set | frozenset) else texts)


def _split_name(name: str, server: str) -> tuple[str, str]:
    """Server and tool of a name, so that the server's words do not count as the tool's."""
    for end in _PREFIX_ENDS:
        prefix = server + end
        if server and name.startswith(prefix) and len(name) > len(prefix):
            return server, name.removeprefix(prefix)
    return (server, name) if server else names.parse(name) or ("", name)


def _parameters(schema: object) -> Iterator[tuple[str, str]]:
    """Names and texts of a schema's properties, nested ones too, the outer ones first."""
    waiting = [schema]
    # The bound is also what ends a schema that holds itself.
    for part in islice(waiting, _MAX_PARTS):
        if isinstance(part, list):
            waiting += cast("list[object]", part)[:_MAX_PROPERTIES]
        if not isinstance(part, Mapping):
            continue
        schema = cast("Mapping[object, object]", part)
        properties = schema.get("properties")
        if isinstance(properties, Mapping):
            for name, inner in islice(cast("Mapping[object, object]", properties).items(), _MAX_PROPERTIES):
                yield (name if isinstance(name, str) else ""), _own_text(inner)
                waiting.append(inner)
        waiting += [schema[key] for key in ("items", "anyOf", "oneOf", "allOf") if key in schema]


def _own_text(schema: object) -> str:
    if not isinstance(schema, Mapping):
        return ""
    schema = cast("Mapping[object, object]", schema)
    return f"{_text(schema.get('description'))}\n{_text(schema.get('enum'))}"
