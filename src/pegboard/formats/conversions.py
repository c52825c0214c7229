"""Tools as providers take them, converted once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from pegboard.formats.schema import object_schema
from pegboard.formats.strict import is_strict
from pegboard.formats.walk import Schema
from pegboard.tool import RegisteredTool

Provider = Literal["anthropic", "openai"]

# Anthropic takes no other names of parameters.
_ANTHROPIC_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


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
        self._most = most
        self._kept: dict[tuple[int, Provider], tuple[Any, Conversion]] = {}

    def of(self, tool: RegisteredTool, provider: Provider) -> Conversion:
        """The conversion of a tool."""
        key = (tool.digest or id(tool.definition), provider)
        kept = self._kept.get(key)
        # Without a digest it is the very same object or another tool; holding it keeps its id from being used again.
        if kept is not None and (tool.digest or kept[0] is tool.definition):
            return kept[1]
        if len(self._kept) >= self._most:
            self._kept.clear()
        converted = _convert(tool, provider)
        self._kept[key] = (tool.definition, converted)
        return converted


def _convert(tool: RegisteredTool, provider: Provider) -> Conversion:
    given = tool.definition.get("inputSchema")
    is_openai = provider == "openai"
    if is_openai:
        found = object_schema(given, items=True, plain_patterns=True)
    else:
        found = object_schema(given, key=_ANTHROPIC_KEY)
    description = str(tool.definition.get("description") or "")
    if found.words:
        description = f"{description}\n\n{found.words}".lstrip()
    return Conversion(description, found.schema, strict=is_openai and not found.words and is_strict(found.schema))
