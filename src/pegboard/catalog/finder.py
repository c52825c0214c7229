"""The finder: the search index over all tools, kept in step with the registry, one server's changes at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pegboard.catalog.registry import ToolRegistry
from pegboard.exactjson import as_list, as_object
from pegboard.search import ToolIndex
from pegboard.tool import RegisteredTool

Keywords = Callable[[RegisteredTool], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool and how well it fits."""

    tool: RegisteredTool
    score: float


class Finder:
    """Finds tools by what they do."""

    def __init__(self, registry: ToolRegistry, configured: Keywords = lambda _: ()) -> None:
        self._registry = registry
        self._configured = configured
        self._index = ToolIndex(())
        # What is in the index, by name: the digest of the tool and its keywords.
        self._known: dict[str, tuple[int, tuple[str, ...]]] = {}
        self._generation = -1

    def find(self, query: str, limit: int, admits: Callable[[RegisteredTool], bool]) -> tuple[list[Hit], int]:
        """The best of the tools that are admitted, and how many of them fit at all."""
        self.keep_up()
        hits: list[Hit] = []
        for found in self._index.search(query, len(self._known)):
            tool = self._registry.get(found.name)
            if tool is not None and admits(tool):
                hits.append(Hit(tool, found.score))
        return hits[: max(limit, 0)], len(hits)

    def like(self, name: str, limit: int) -> list[str]:
        """Names of tools that could have been meant."""
        self.keep_up()
        return [found.name for found in self._index.search(name, limit)]

    def keep_up(self) -> None:
        """Take over what changed since the last time; the rest of the index stays as it is."""
        if self._generation == self._registry.generation:
            return
        self._generation = self._registry.generation
        tools = {tool.name: (tool, self.keywords(tool)) for tool in self._registry.all()}
        for name in [name for name in self._known if name not in tools]:
            self._index.remove(name)
            del self._known[name]
        for name, (tool, keywords) in tools.items():
            state = (tool.digest, keywords)
            if self._known.get(name) != state:
                if name in self._known:
                    self._index.remove(name)
                self._index.add(_document(tool, keywords))
                self._known[name] = state

    def reconfigured(self) -> None:
        """The configured keywords may be others now."""
        self._generation = -1

    def keywords(self, tool: RegisteredTool) -> tuple[str, ...]:
        """Words a tool is to be found by: its own, its server's, the config's."""
        own = tool.tool.keywords if tool.tool is not None else _said(tool.definition, "keywords", "tags")
        return tuple(dict.fromkeys([*own, *self._configured(tool)]))


def category(tool: RegisteredTool) -> str | None:
    """What kind of tool it is, as far as anybody says."""
    if tool.tool is not None:
        return tool.tool.category
    return next(iter(_said(tool.definition, "category")), None)


def _document(tool: RegisteredTool, keywords: Sequence[str]) -> Mapping[str, Any]:
    return {
        "name": tool.name,
        "description": tool.definition.get("description"),
        "input_schema": tool.definition.get("inputSchema"),
        "server": tool.server_name,
        "keywords": list(keywords),
        "category": category(tool),
    }


def _said(definition: Mapping[str, Any], *keys: str) -> list[str]:
    """Texts that a server put into a tool's `_meta` under one of these keys, or one level below."""
    meta = as_object(definition.get("_meta")) or {}
    places = [meta, *(inner for value in meta.values() if (inner := as_object(value)) is not None)]
    found: list[str] = []
    for place in places:
        for key in keys:
            value = place.get(key)
            values = [value] if isinstance(value, str) else as_list(value) or []
            found += [text for text in values if isinstance(text, str)]
    return found
