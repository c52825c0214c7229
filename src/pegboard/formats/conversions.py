"""Conversion of tools by a provider's rules for schemas, each tool once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pegboard.formats.schema import object_schema
from pegboard.formats.strict import is_strict
from pegboard.formats.walk import Schema
from pegboard.lru_dict import LruDict
from pegboard.tool import RegisteredTool


@dataclass(frozen=True, slots=True, eq=False)
class SchemaRules:
    """What a provider takes of JSON Schema; one object a provider, which is its identity in the cache."""

    # How parameters may be called; anything if there is no pattern.
    key: re.Pattern[str] | None = None
    # Whether every array has to say something of its items.
    items: bool = False
    # Whether regular expressions are only those that OpenAI takes.
    plain_patterns: bool = False
    # Whether there is a strict mode.
    strict_mode: bool = False


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a provider is told of a tool, besides its name."""

    description: str
    schema: Schema
    strict: bool


class Conversions:
    """Keeps what was converted, by what was converted: a tool that comes again unchanged costs nothing.

    What it gives is shared by everybody who asks: to be read, not to be changed.
    """

    def __init__(self, most: int = 20_000) -> None:
        self._kept = LruDict[tuple[int, SchemaRules], tuple[Any, Conversion]](most)

    def of(self, tool: RegisteredTool, rules: SchemaRules) -> Conversion:
        """The conversion of a tool."""
        key = (tool.digest or id(tool.definition), rules)
        kept = self._kept.get(key)
        # Without a digest it is the very same object or another tool; holding it keeps its id from being used again.
        if kept is not None and (tool.digest or kept[0] is tool.definition):
            return kept[1]
        converted = _convert(tool, rules)
        self._kept[key] = (tool.definition, converted)
        return converted


def _convert(tool: RegisteredTool, rules: SchemaRules) -> Conversion:
    given = tool.definition.get("inputSchema")
    found = object_schema(given, key=rules.key, items=rules.items, plain_patterns=rules.plain_patterns)
    description = str(tool.definition.get("description") or "")
    if found.words:
        description = f"{description}\n\n{found.words}".lstrip()
    return Conversion(description, found.schema, rules.strict_mode and not found.words and is_strict(found.schema))
