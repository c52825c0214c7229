"""The file of npm's `@modelcontextprotocol/server-memory`: entities and relations, one JSON object a line.

An entity is a memory: its name the key, its type the summary, its observations the lines of the text. An observation of
several lines has Unicode's line separators in it here, so that it is one again there. A relation is a link of its first
entity; it may stand before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pegboard.exactjson import as_list
from pegboard.result import ToolFailure, invalid
from pegboard.toolsets.memory.limits import MAX_LINKS, validate_key, validate_links
from pegboard.toolsets.memory.memory import Link
from pegboard.toolsets.memory.saved import Saved

ENTITY, RELATION = "entity", "relation"
# The type of an entity that was a memory without a summary, and comes back as one; none may be empty there.
_TYPE = "memory"
_LINE_SEPARATOR = "\u2028"


@dataclass(slots=True)
class KnowledgeGraph:
    """What was read so far. That server holds all of its file whenever it is asked something, so these are small."""

    entities: dict[str, tuple[int, Saved]] = field(default_factory=dict[str, tuple[int, Saved]])
    relations: dict[str, list[tuple[int, Link]]] = field(default_factory=dict[str, list[tuple[int, Link]]])

    def read(self, line: int, row: Mapping[str, Any], namespace: str) -> None:
        """Take in a line."""
        if row["type"] == ENTITY:
            text = "\n".join(each.replace("\n", _LINE_SEPARATOR) for each in _observations(row))
            kind = _text(row, "entityType")
            summary = "" if kind == _TYPE else kind
            saved = Saved(namespace=namespace, key=_text(row, "name"), summary=summary, text=text).validate()
            if saved.key in self.entities:
                raise invalid(f"there are two entities of the name {saved.key!r}; the first one counts")
            self.entities[saved.key] = (line, saved)
        else:
            (link,) = validate_links([Link(_text(row, "to"), _text(row, "relationType"))])
            self.relations.setdefault(validate_key(_text(row, "from")), []).append((line, link))

    def memories(self) -> Iterator[tuple[int, Saved | ToolFailure]]:
        """Every entity with its links, and what cannot be kept, with the line it stands in."""
        for key, (line, saved) in self.entities.items():
            first: dict[Link, int] = {}
            for at, link in self.relations.pop(key, []):
                first.setdefault(link, at)
            yield line, replace(saved, links=list(first)[:MAX_LINKS])
            for extra in list(first.values())[MAX_LINKS:]:
                yield extra, invalid(f"{key!r} has more than {MAX_LINKS} relations")
        for name, related in self.relations.items():
            for line, _ in related:
                yield line, invalid(f"there is no entity of the name {name!r}")


def rows_of(saved: Saved) -> Iterator[dict[str, Any]]:
    """A memory as lines of such a file."""
    lines = [line.replace(_LINE_SEPARATOR, "\n") for line in saved.text.split("\n")] if saved.text else []
    yield {"type": ENTITY, "name": saved.key, "entityType": saved.summary or _TYPE, "observations": lines}
    for link in saved.links:
        yield {"type": RELATION, "from": saved.key, "to": link.key, "relationType": link.type}


def _observations(row: Mapping[str, Any]) -> list[str]:
    given = as_list(row.get("observations", []))
    if given is None or not all(isinstance(each, str) for each in given):
        raise invalid("observations must be a list of texts")
    return [str(each) for each in given]


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise invalid(f"{name} must be a text")
    return value
