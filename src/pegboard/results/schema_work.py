"""How much work it is to validate a value against a schema that a server wrote, found out without validating.

The validator holds the interpreter while it runs, and a schema of forty lines can keep it busy for years: each of two
branches refers to the next definition. So each pair of a subschema and a value that it would be applied to is counted
first, as if no branch were ever skipped. What has too many pairs, or keywords whose work cannot be foreseen, is not
validated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pegboard.exactjson import as_list, as_object

Place = tuple[str | int, ...]

# Values of a schema, and how deep references and values may be nested in each other.
MOST_SCHEMA, _MOST_DEPTH = 20_000, 120
# Units of work of one validation: about 0.1 µs each, also a character for a pattern. Each error costs more, since it
# has a copy of the value that it is about.
MOST_WORK, MOST_WORK_OF_ERRORS = 60_000, 60_000
_PATTERN, _ERROR = 100, 4
_CHARACTERS, _VALUES_PER_WORK = 1000, 4
# Whole numbers of more bits are slow to compute with.
_BITS = 64

_LISTS = ("allOf", "anyOf", "oneOf")
_BRANCHES = ("not", "if", "then", "else")
_MAPS = ("dependentSchemas", "dependencies")
# They look at what other keywords have found, or at schemas that only the way to them tells.
_UNFORESEEN = frozenset({"unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "$recursiveRef"})
_IDS = frozenset({"$id", "id"})
_SAYING_NOTHING = frozenset({"title", "description", "default", "examples", "$comment", "$defs", "definitions"})
# A string that has one of these is a date, an address, an encoded file: a part of it is none any more.
_FORMATS = frozenset({"format", "contentEncoding", "contentMediaType"})


class TooMuchWork(Exception):  # noqa: N818  it says what it would be
    """To validate it would be too much."""


class SchemaWork:
    """Foresees the work of one schema; `TooMuchWork` if that cannot be done for any value."""

    def __init__(self, schema: Any) -> None:
        self._root = schema
        left = MOST_SCHEMA
        values: list[Any] = [schema]
        while values:
            value = values.pop()
            left -= 1
            if (members := as_object(value)) is not None:
                left -= _PATTERN * (isinstance(members.get("pattern"), str) + len(_map(members, "patternProperties")))
                values += members.values()
            elif (items := as_list(value)) is not None:
                values += items
            elif isinstance(value, str):
                left -= len(value) // _CHARACTERS
            elif isinstance(value, int) and value.bit_length() > _BITS:
                left = -1
            if left < len(values):
                raise TooMuchWork

    def foresee(self, value: Any) -> WorkOfValue:
        """The work of a value; `TooMuchWork` if it has too much."""
        _refuse_large(value)
        found = WorkOfValue(self._root)
        found.add(self._root, value, (), 0)
        return found


class WorkOfValue:
    """What it takes to validate one value."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self.work = self.of_errors = 0
        # Where strings stand that have a format.
        self.formats: set[Place] = set()
        self._sizes: dict[int, int] = {}

    @property
    def may_have_errors(self) -> bool:
        """Whether all errors can be asked for, and not only whether there are any."""
        return self.of_errors <= MOST_WORK_OF_ERRORS

    def add(self, schema: Any, value: Any, place: Place, depth: int) -> None:
        """Count a schema for a value, and all that it leads to."""
        members = as_object(schema)
        if members is None:
            self._count(1, value)
            return
        if depth > _MOST_DEPTH or not _UNFORESEEN.isdisjoint(members) or self._is_elsewhere(members):
            raise TooMuchWork
        self._count(_weigh_keywords(members), value)
        if isinstance(value, str):
            self._add_text(members, value, place)
        for branch in self._branches(members):
            self.add(branch, value, place, depth + 1)
        if (inner := as_object(value)) is not None:
            self._add_members(members, inner, place, depth)
        elif (items := as_list(value)) is not None:
            self._add_items(members, items, place, depth)

    def _count(self, keywords: int, value: Any) -> None:
        self._spend(keywords)
        self.of_errors += keywords * (self._size(value) + _ERROR)

    def _spend(self, work: int) -> None:
        self.work += work
        if self.work > MOST_WORK:
            raise TooMuchWork

    def _add_text(self, members: Mapping[str, Any], value: str, place: Place) -> None:
        self._spend(len(value) // _CHARACTERS + (2 * len(value) if "pattern" in members else 0))
        if not _FORMATS.isdisjoint(members):
            self.formats.add(place)

    def _branches(self, members: Mapping[str, Any]) -> Iterator[Any]:
        for key in _LISTS:
            yield from as_list(members.get(key)) or ()
        for key in _BRANCHES:
            if key in members:
                yield members[key]
        for key in _MAPS:
            yield from _map(members, key).values()
        if "$ref" in members:
            yield self._resolve(members["$ref"])

    def _is_elsewhere(self, members: Mapping[str, Any]) -> bool:
        """Whether references in it lead elsewhere."""
        return members is not self._root and any(isinstance(members.get(key), str) for key in _IDS)

    def _resolve(self, reference: object) -> Any:
        """What a reference leads to, in the same schema alone."""
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")) or "%" in reference:
            raise TooMuchWork
        found = self._root
        for part in reference.split("/")[1:]:
            step = part.replace("~1", "/").replace("~0", "~")
            items = as_list(found)
            try:
                found = found[step] if items is None else items[int(step)]
            except (LookupError, TypeError, ValueError):
                raise TooMuchWork from None
        return found

    def _add_members(self, members: Mapping[str, Any], value: Mapping[str, Any], place: Place, depth: int) -> None:
        properties, patterns = _map(members, "properties"), _map(members, "patternProperties")
        others = [*patterns.values(), *_one(members, "additionalProperties")]
        for_names = _one(members, "propertyNames")
        self._spend(len(properties))
        named = (name for name in properties if name in value)
        for name in value if others or for_names else named:
            if patterns:
                self._spend(2 * len(name) * len(patterns))
            for schema in for_names:
                self.add(schema, name, (), depth + 1)
            for schema in (*_one(properties, name), *others):
                self.add(schema, value[name], (*place, name), depth + 1)

    def _add_items(self, members: Mapping[str, Any], value: list[Any], place: Place, depth: int) -> None:
        if members.get("uniqueItems") is True:
            self._spend(self._size(value))
        first = [*(as_list(members.get("prefixItems")) or ()), *(as_list(members.get("items")) or ())]
        each = [
            *(() if isinstance(members.get("items"), list) else _one(members, "items")),
            *_one(members, "additionalItems"),
            *_one(members, "contains"),
        ]
        for number, item in enumerate(value if each else value[: len(first)]):
            for schema in (*first[number : number + 1], *each):
                self.add(schema, item, (*place, number), depth + 1)

    def _size(self, value: Any) -> int:
        """How many values there are in it, itself included."""
        inner = as_object(value)
        items = as_list(value) if inner is None else list(inner.values())
        if items is None:
            return 1
        # It is alive as long as this is: no other value gets its id.
        size = self._sizes.get(id(value))
        if size is None:
            size = self._sizes[id(value)] = 1 + sum(map(self._size, items))
        return size


def _weigh_keywords(members: Mapping[str, Any]) -> int:
    weight = 1 + sum(key not in _SAYING_NOTHING for key in members)
    for key in ("enum", "const", "required", "dependentRequired"):
        weight += _count_values(members[key]) if key in members else 0
    return weight


def _count_values(value: Any) -> int:
    count, values = 0, [value]
    while values:
        count += 1
        inner = values.pop()
        values += (as_object(inner) or {}).values() or as_list(inner) or ()
    return count


def _refuse_large(value: Any) -> None:
    """A large value takes its time whatever its schema is: it is copied for the validator."""
    left = _VALUES_PER_WORK * MOST_WORK
    values = [value]
    while values:
        inner = values.pop()
        left -= 1
        if isinstance(inner, str):
            left -= len(inner) // _CHARACTERS
        elif (members := as_object(inner)) is not None:
            values += members.values()
        else:
            values += as_list(inner) or ()
        if left < len(values):
            raise TooMuchWork


def _map(members: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return as_object(members.get(key)) or {}


def _one(members: Mapping[str, Any], key: str) -> tuple[Any, ...]:
    """The schema of a keyword, if that says anything."""
    return (members[key],) if key in members and not isinstance(members[key], bool) else ()
