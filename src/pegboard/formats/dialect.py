"""Schemas of older drafts in the words of 2020-12, which is what model providers read.

A provider refuses a whole request for one tuple in draft-07's form, so what a draft means is kept and how it is
written changes. A schema that names no draft is one of 2020-12 already: that is MCP's rule.
"""

from __future__ import annotations

import re
from typing import Any

from pegboard.exactjson import as_list, as_object
from pegboard.formats.walk import ANNOTATIONS, STORES, Schema, rebuilt

_DRAFT = re.compile(r"https?://json-schema\.org/(?:draft-0([467])|draft/(2019)-09)/schema#?")
_2019, _2020 = 2019, 2020
# Since which draft a word means something: before, it was passed over, and must not begin to forbid now.
_SINCE = {
    "const": 6, "contains": 6, "propertyNames": 6, "if": 7, "then": 7, "else": 7,
    "dependentRequired": _2019, "dependentSchemas": _2019, "unevaluatedItems": _2019, "unevaluatedProperties": _2019,
    "minContains": _2019, "maxContains": _2019, "$recursiveRef": _2019, "prefixItems": _2020, "$dynamicRef": _2020,
}  # fmt: skip


def modern(schema: Schema, made: dict[int, Schema]) -> Schema:
    """The schema in 2020-12, without the name of its dialect; `made` is told what became of each part."""
    said = schema.get("$schema")
    draft = _DRAFT.fullmatch(said) if isinstance(said, str) else None
    plain = {key: value for key, value in schema.items() if key != "$schema"}
    if draft is not None:
        number = int(draft[1] or draft[2])
        plain = rebuilt(plain, lambda each: _modern(each, number), made)
    made[id(schema)] = plain
    return plain


def _modern(schema: Schema, draft: int) -> Schema:
    changed = {key: value for key, value in schema.items() if _SINCE.get(key, 0) <= draft}
    if draft < _2019:
        changed = _alone(changed)
        _dependencies(changed)
    _bounds(changed)
    _tuples(changed)
    if isinstance(changed.get("$recursiveRef"), str):
        changed.setdefault("$ref", changed.pop("$recursiveRef"))
    changed.pop("$recursiveAnchor", None)
    return changed


def _alone(schema: Schema) -> Schema:
    """Where `$ref` stands, drafts up to 7 do not look at anything beside it."""
    if not isinstance(schema.get("$ref"), str):
        return schema
    return {key: value for key, value in schema.items() if key == "$ref" or key in ANNOTATIONS or key in STORES}


def _bounds(schema: Schema) -> None:
    """In draft 4 whether a bound itself is meant is told beside it."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(exclusive), bool):
            is_meant = schema.pop(exclusive)
            if is_meant and bound in schema:
                schema[exclusive] = schema.pop(bound)


def _tuples(schema: Schema) -> None:
    rest = schema.pop("additionalItems", None)
    if (items := as_list(schema.get("items"))) is not None:
        del schema["items"]
        if items:
            schema["prefixItems"] = items
        if rest is not None:
            schema["items"] = rest


def _dependencies(schema: Schema) -> None:
    found = as_object(schema.get("dependencies"))
    if found is None:
        return
    del schema["dependencies"]
    required: dict[str, Any] = {name: each for name, each in found.items() if isinstance(each, list)}
    schemas = {name: each for name, each in found.items() if name not in required}
    if required:
        schema["dependentRequired"] = required
    if schemas:
        schema["dependentSchemas"] = schemas
