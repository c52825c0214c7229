"""What providers call a tool, both ways.

A provider takes 64 characters of a small alphabet; over MCP a tool's name is kept shorter, since clients put a prefix
of their own before it. So a tool may have a longer name here than there, and whatever comes back is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable

from pegboard.names import SEPARATOR, compose, public_name
from pegboard.tool import RegisteredTool

MAX_LENGTH = 64


class NameBook:
    """The names of some tools: flat (`server__tool`), and by namespace (`server`, `tool`)."""

    def __init__(self, tools: Iterable[RegisteredTool], *, max_length: int = MAX_LENGTH) -> None:
        self._max_length = max_length
        self._names: dict[str, str] = {}
        self._tools: dict[str, str] = {}
        self._places: dict[str, tuple[str | None, str]] = {}
        self._placed: dict[tuple[str | None, str], str] = {}
        for tool in tools:
            self._add(tool)

    def name(self, tool: str) -> str:
        """A tool's name for a provider; one that is not in the book is only made to fit."""
        return self._names.get(tool) or public_name(tool, self._max_length)

    def place(self, tool: str) -> tuple[str | None, str]:
        """The namespace of a tool, which is its server, and its name in there; a static tool has no namespace."""
        return self._places.get(tool) or (None, self.name(tool))

    def tool(self, name: str, namespace: str | None = None) -> str | None:
        """The tool that a provider means; `None` if the book does not have it."""
        if namespace is not None and (found := self._placed.get((namespace, name))):
            return found
        # A deferred function that stands alone comes back with its own name for a namespace.
        if namespace not in {None, name}:
            return None
        return self._tools.get(name) or (name if name in self._names else None)

    def resolve(self, name: str, namespace: str | None = None) -> str:
        """The tool that a provider means, or the name of one that there is not: whoever is asked for it can say so."""
        return self.tool(name, namespace) or (name if namespace in {None, name} else compose(str(namespace), name))

    def sort(self, tools: Iterable[RegisteredTool]) -> list[RegisteredTool]:
        """Tools by their names for a provider, which may be longer than those here and come in another order."""
        return sorted(tools, key=lambda tool: self.name(tool.name))

    def _add(self, tool: RegisteredTool) -> None:
        full = _full_name(tool)
        name = public_name(full, self._max_length)
        if name in self._tools:
            name = public_name(f"{full} {tool.name}", self._max_length)
        self._names[tool.name] = name
        self._tools[name] = tool.name
        place = (None, name)
        if tool.server_name is not None:
            place = (public_name(tool.server_name, self._max_length), public_name(tool.original_name, self._max_length))
        self._places[tool.name] = place
        self._placed[place] = tool.name


def _full_name(tool: RegisteredTool) -> str:
    """The name before anything was cut off."""
    if tool.server_name is None or tool.name == tool.original_name:
        return tool.name
    if tool.name.startswith(tool.server_name + SEPARATOR):
        return compose(tool.server_name, tool.original_name)
    return tool.original_name
