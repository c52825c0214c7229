"""Regular expressions in schemas, as OpenAI takes them.

It refuses a whole request, strict or not, for one expression that looks around or that its own language cannot read.
Such a one is taken out and told in the description instead: the server is the judge. That admits more, so what would
admit less because of it (`not`, `oneOf`, `if`) is loosened as well.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

from pegboard.exactjson import as_list, as_object
from pegboard.formats.references import MISSING, at
from pegboard.formats.walk import Schema, rebuilt, schemas

_LOOKS_AROUND = re.compile(r"\(\?<?[=!]")
_BY_REFERENCE = frozenset({"$ref", "$dynamicRef"})


def with_plain_patterns(schema: Schema) -> Schema:
    """The schema without expressions that OpenAI refuses."""
    if not any(map(_patterns_to_remove, schemas(schema))):
        return schema
    return _with_lost_parts(rebuilt(rebuilt(schema, _loosen), _describe_patterns), schema)


def _patterns_to_remove(schema: Schema) -> list[str]:
    named = as_object(schema.get("patternProperties")) or {}
    found: list[Any] = [schema.get("pattern"), *named]
    return [pattern for pattern in found if isinstance(pattern, str) and not _is_plain(pattern)]


def _is_plain(pattern: str) -> bool:
    if _LOOKS_AROUND.search(pattern):
        return False
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _loosen(schema: Schema) -> Schema:
    """Without what would be narrower once a part of it is wider."""
    changed = dict(schema)
    if _may_widen(schema.get("not")):
        del changed["not"]
    if _may_widen(schema.get("if")):
        changed = {key: value for key, value in changed.items() if key not in {"if", "then", "else"}}
    if _may_widen(schema.get("contains")):
        changed.pop("maxContains", None)
    if any(map(_may_widen, as_list(schema.get("oneOf")) or [])):
        alternatives = {"anyOf": changed.pop("oneOf")}
        if "anyOf" in changed:
            changed["allOf"] = [*(as_list(changed.get("allOf")) or []), alternatives]
        else:
            changed |= alternatives
    if "unevaluatedProperties" in changed and _may_widen(schema):
        del changed["unevaluatedProperties"]
    return changed


def _may_widen(part: object) -> bool:
    """Whether something in there is taken out, or may be where a reference leads."""
    return any(_patterns_to_remove(each) or _BY_REFERENCE & each.keys() for each in schemas(part))


def _describe_patterns(schema: Schema) -> Schema:
    refused = _patterns_to_remove(schema)
    if not refused:
        return schema
    kept = {key: value for key, value in schema.items() if key != "pattern" or value not in refused}
    named = as_object(kept.get("patternProperties")) or {}
    if named.keys() & refused:
        kept["patternProperties"] = {key: value for key, value in named.items() if key not in refused}
        # What fitted one of them is a property like any other now, and must not be forbidden.
        kept.pop("additionalProperties", None)
    said = schema.get("description")
    words = [said] if isinstance(said, str) and said else []
    words += [f"Regular expression: {pattern}" for pattern in refused]
    return {**kept, "description": "\n".join(words)}


def _with_lost_parts(made: Schema, before: Schema) -> Schema:
    """With what references led to, where that was taken out, among the definitions."""
    known = dict(as_object(made.get("$defs")) or {})
    places: dict[str, str] = {}
    for each in schemas(before):
        reference = each.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/") or reference in places:
            continue
        fragment = unquote(reference[1:])
        target = at(before, fragment)
        if target is MISSING or at(made, fragment) is not MISSING:
            continue
        name = next(name for number in range(len(known) + 1) if (name := f"part_{number}") not in known)
        found = as_object(target)
        known[name] = target if found is None else rebuilt(rebuilt(found, _loosen), _describe_patterns)
        places[reference] = f"#/$defs/{name}"
    if not places:
        return made
    return rebuilt({**made, "$defs": known}, lambda each: _repoint(each, places))


def _repoint(schema: Schema, places: dict[str, str]) -> Schema:
    reference = schema.get("$ref")
    return {**schema, "$ref": places[reference]} if isinstance(reference, str) and reference in places else schema
