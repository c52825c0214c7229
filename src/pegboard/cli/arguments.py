"""The arguments of a call as people type them: `key=value`, with the type that the tool's schema wants."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pegboard.exactjson import NotJson, as_object, parse

Schema = Mapping[str, Any]

_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_BOOLEANS = {"true": True, "false": False}
_EXAMPLES = {
    "integer": "a whole number, like 5",
    "number": "a number, like 2.5",
    "boolean": "true or false",
    "null": "null",
    "array": """a JSON array, like '["a", "b"]'""",
    "object": """a JSON object, like '{"a": 1}'""",
}
# From the narrowest on: what a text is taken for where a schema allows several types.
_ORDER = ("null", "boolean", "integer", "number", "array", "object", "string")
# A schema may refer to itself.
_DEEPEST = 8
_MOST_NAMED = 12


class ArgumentError(ValueError):
    """What is wrong with what was typed."""


def read_arguments(tool: str, schema: Schema, words: Sequence[str]) -> dict[str, Any]:
    """The arguments that `key=value` and `key:=JSON` stand for; `ArgumentError` names the word that is wrong."""
    arguments: dict[str, Any] = {}
    for word in words:
        key, value, is_raw = _split(word)
        _check_key(tool, schema, key)
        if key in arguments:
            raise ArgumentError(f"{key} is given twice")
        arguments[key] = _parse_json(key, value) if is_raw else _convert(schema, key, value)
    return arguments


def is_pair(word: str) -> bool:
    """Whether a word looks like `key=value`, and not like JSON."""
    return "=" in word and not word.lstrip().startswith(("{", "["))


def argument_names(schema: Schema) -> list[str]:
    """The keys that a tool's schema names."""
    return list(as_object(schema.get("properties")) or {})


def _split(word: str) -> tuple[str, str, bool]:
    key, equals, value = word.partition("=")
    is_raw = key.endswith(":")
    key = key.removesuffix(":")
    if not equals or not key:
        raise ArgumentError(f"{word!r} is not KEY=VALUE; arguments are KEY=VALUE … or one JSON object")
    return key, value, is_raw


def _check_key(tool: str, schema: Schema, key: str) -> None:
    """Refuse a key that the tool does not have: a misspelt one would be left out of account by many servers."""
    from pegboard.names import nearest

    known = argument_names(schema)
    others = schema.get("additionalProperties")
    takes_others = others is True or bool(as_object(others)) or bool(schema.get("patternProperties"))
    # A schema that is made of others may have keys that do not stand here.
    if key in known or takes_others or any(part in schema for part in ("$ref", "allOf", "anyOf", "oneOf")):
        return
    if not known:
        if others is False:
            raise ArgumentError(f"{tool} has no argument {key!r}: it takes none")
        # It does not say what it takes.
        return
    close = nearest(key, known, 1)
    names = ", ".join(known[:_MOST_NAMED]) + (", …" if len(known) > _MOST_NAMED else "")
    hint = f"did you mean {close[0]}? " if close else ""
    raise ArgumentError(f"{tool} has no argument {key!r}: {hint}It takes {names}.")


def _convert(schema: Schema, key: str, value: str) -> Any:
    part = as_object((as_object(schema.get("properties")) or {}).get(key)) or {}
    choices = list(_choices(schema, part, 0))
    if value in choices:
        return value
    allowed = set(_types(schema, part, 0))
    kinds = [kind for kind in _ORDER if kind in allowed] or ["string"]
    for kind in kinds:
        if kind == "string":
            return value
        found, read = _read_as(kind, key, value)
        if found:
            return read
    raise ArgumentError(f"{key} must be {' or '.join(_EXAMPLES[kind] for kind in kinds)}; found {value[:80]!r}")


def _read_as(kind: str, key: str, value: str) -> tuple[bool, Any]:
    """Whether a text is a value of this type, and which."""
    if kind == "null":
        return value == "null", None
    if kind == "boolean":
        return value in _BOOLEANS, _BOOLEANS.get(value)
    if kind in {"integer", "number"}:
        fits = (_INTEGER if kind == "integer" else _NUMBER).fullmatch(value) is not None
        return fits, parse(value) if fits else None
    if not value.lstrip().startswith("[" if kind == "array" else "{"):
        return False, None
    return True, _parse_json(key, value)


def _parse_json(key: str, value: str) -> Any:
    try:
        return parse(value)
    except NotJson as exc:
        raise ArgumentError(f"{key}: {value[:80]!r} cannot be read as JSON: {exc}") from None


def _types(root: Schema, schema: Schema, depth: int) -> Iterator[str]:
    """The types that a schema allows, as far as it says."""
    given = schema.get("type")
    yield from (str(each) for each in (given if isinstance(given, list) else [given] if given else []))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    for part in _parts(root, schema, depth):
        yield from _types(root, part, depth + 1)


def _choices(root: Schema, schema: Schema, depth: int) -> Iterator[object]:
    """The texts that a schema names one by one."""
    yield from (each for each in [*(schema.get("enum") or ()), schema.get("const")] if isinstance(each, str))
    for part in _parts(root, schema, depth):
        yield from _choices(root, part, depth + 1)


def _parts(root: Schema, schema: Schema, depth: int) -> Iterator[Schema]:
    """The schemas that one is made of."""
    if depth > _DEEPEST:
        return
    for kind in ("anyOf", "oneOf", "allOf"):
        yield from (part for each in schema.get(kind) or () if (part := as_object(each)) is not None)
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        found: Any = root
        for step in reference[2:].split("/"):
            found = (as_object(found) or {}).get(step.replace("~1", "/").replace("~0", "~"))
        if (part := as_object(found)) is not None:
            yield part
