"""What a parameter takes, as far as its schema says that: a text, or a value of another kind."""

from __future__ import annotations

from typing import Any

from pegboard.exactjson import as_list, as_object

# References are followed so often, and no further than into definitions; of more branches, nothing is known.
_MOST_HOPS, _MOST_BRANCHES = 8, 20
_DEFINITIONS = ("#/$defs/", "#/definitions/")


class Parameter:
    """A place among the arguments of a tool."""

    def __init__(self, root: Any, schema: Any = None, *, is_branch: bool = False) -> None:
        self._root = root
        self._is_branch = is_branch
        self._schema = self._resolve(as_object(root if schema is None else schema) or {})

    def member(self, name: str) -> Parameter:
        """What stands in it under a name."""
        properties = as_object(self._schema.get("properties")) or {}
        return Parameter(self._root, properties.get(name, self._schema.get("additionalProperties")) or {})

    def item(self) -> Parameter:
        """Each item of it."""
        return Parameter(self._root, self._schema.get("items") or {})

    def wants_text(self, value: Any) -> bool:
        """Whether it takes a text, and no value of this kind."""
        kinds = self.kinds()
        return kinds is not None and "string" in kinds and kinds.isdisjoint(_kinds_of(value))

    def kinds(self) -> set[str] | None:
        """The kinds of values that it takes; `None` if it does not say."""
        named = self._schema.get("type")
        if isinstance(named, str):
            return {named}
        if (several := as_list(named)) is not None:
            return {kind for kind in several if isinstance(kind, str)}
        branches = as_list(self._schema.get("anyOf")) or as_list(self._schema.get("oneOf"))
        # Branches in branches could be any number.
        if not branches or self._is_branch or len(branches) > _MOST_BRANCHES:
            return None
        found = [Parameter(self._root, branch, is_branch=True).kinds() for branch in branches]
        known = [kinds for kinds in found if kinds is not None]
        return set[str]().union(*known) if len(known) == len(found) else None

    def _resolve(self, schema: dict[str, Any]) -> dict[str, Any]:
        root = as_object(self._root) or {}
        for _ in range(_MOST_HOPS):
            if not isinstance(reference := schema.get("$ref"), str):
                return schema
            start = next((each for each in _DEFINITIONS if reference.startswith(each)), None)
            if start is None:
                return {}
            definitions = as_object(root.get(start.strip("#/"))) or {}
            schema = as_object(definitions.get(reference.removeprefix(start))) or {}
        return {}


def _kinds_of(value: Any) -> set[str]:
    if value is None:
        return {"null"}
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, int | float):
        return {"number", "integer"} if isinstance(value, int) or value.is_integer() else {"number"}
    return {"string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"}
