"""References inside a schema, and how they go on to mean the same when parts of it have moved."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from pegboard.exactjson import as_list, as_object
from pegboard.formats.dialect import modern
from pegboard.formats.walk import STORES, Schema, is_document, rebuilt, schemas


class _Missing:
    """Nothing is there; `None` would be a value."""


MISSING = _Missing()


class SchemaDocument:
    """A schema as it was given, the same in 2020-12 (`root`), and what its references mean."""

    def __init__(self, given: Schema) -> None:
        self._given = given
        self._made: dict[int, Schema] = {}
        self.root = modern(given, self._made)
        self._base = str(given.get("$id") or "").removesuffix("#")
        # What was looked through for anchors, and what was found: once for a schema, not once for a reference.
        self._anchored: dict[int, tuple[Schema, Schema]] = {}

    def target(self, reference: str) -> Any:
        """The part that a reference means, in 2020-12; `MISSING` where it leads nowhere or to another place."""
        fragment = self.fragment(reference)
        if fragment is None:
            return MISSING
        found = self._at(self._given, fragment)
        return self._made.get(id(found), found)

    def fragment(self, reference: str) -> str | None:
        """What stands behind the `#` of a reference to this document; `None` if it is to another."""
        place, _, fragment = reference.partition("#")
        return unquote(fragment) if place in {"", self._base} else None

    def adopt(self, root: Schema) -> None:
        """Another root means the same: references to the whole are to that one."""
        self.root = self._made[id(self._given)] = root

    def fix_references(self, schema: Schema) -> Schema:
        """The schema with each reference meaning what it means in this document.

        What stands in another place now, or nowhere, is put into `$defs`. A reference that never led anywhere goes:
        a provider would refuse every tool for it.
        """
        moved = self._stale_references(schema)
        if not moved:
            return schema
        names = set(as_object(schema.get("$defs")) or {})
        stored: Schema = {}
        known: dict[str, str | None] = {}
        while moved:
            for reference, target in moved.items():
                known[reference] = self._store(reference, target, names, stored)
            moved = {
                ref: part for ref, part in self._stale_references(schema, *stored.values()).items() if ref not in known
            }
        whole = {**schema, "$defs": {**(as_object(schema.get("$defs")) or {}), **stored}} if stored else schema
        return rebuilt(whole, lambda each: _repoint(each, known))

    def _stale_references(self, schema: Schema, *more: Any) -> dict[str, Any]:
        """References that do not mean the same in a schema, with what they should mean."""
        found: dict[str, Any] = {}
        for part in (schema, *(each for each in more if not is_document(as_object(each) or {}))):
            for each in schemas(part):
                reference = each.get("$ref")
                if isinstance(reference, str) and reference not in found:
                    target = self.target(reference)
                    here = self._at(schema, self.fragment(reference) or "")
                    if target is MISSING or not reference.startswith("#") or here is not target:
                        found[reference] = target
        return found

    def _at(self, schema: Schema, fragment: str) -> Any:
        if not fragment or fragment.startswith("/"):
            return at(schema, fragment)
        if id(schema) not in self._anchored:
            named: Schema = {}
            for each in schemas(schema):
                for name in _anchors(each):
                    named.setdefault(name, each)
            self._anchored[id(schema)] = (schema, named)
        return self._anchored[id(schema)][1].get(fragment, MISSING)

    def _store(self, reference: str, target: Any, names: set[str], stored: Schema) -> str | None:
        """Where the target is from now on."""
        if target is MISSING:
            return None
        last = (self.fragment(reference) or "").rpartition("/")[2] or "root"
        name = last = "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in last)
        count = 1
        while name in names:
            count += 1
            name = f"{last}_{count}"
        names.add(name)
        if target is self.root:
            # What it stores stays where it is: references to that are from the top.
            target = {key: value for key, value in self.root.items() if key not in {*STORES, "$id"}}
        stored[name] = target
        return f"#/$defs/{name}"


def at(schema: Schema, fragment: str) -> Any:
    """The part of a schema at a JSON pointer or an anchor; `MISSING` where there is none."""
    if not fragment:
        return schema
    if not fragment.startswith("/"):
        return next((each for each in schemas(schema) if fragment in _anchors(each)), MISSING)
    found: Any = schema
    for step in fragment[1:].split("/"):
        found = _step(found, step.replace("~1", "/").replace("~0", "~"))
    return found if isinstance(found, bool) or as_object(found) is not None else MISSING


def _step(value: Any, name: str) -> Any:
    if (named := as_object(value)) is not None:
        return named.get(name, MISSING)
    items = as_list(value)
    if items is None or not (name.isascii() and name.isdigit()) or int(name) >= len(items):
        return MISSING
    return items[int(name)]


def _anchors(schema: Schema) -> set[Any]:
    own = schema.get("$id")
    names = {own[1:]} if isinstance(own, str) and own.startswith("#") else set[Any]()
    return names | {name for key in ("$anchor", "$dynamicAnchor") if isinstance(name := schema.get(key), str)}


def _repoint(schema: Schema, known: dict[str, str | None]) -> Schema:
    reference = schema.get("$ref")
    if not isinstance(reference, str) or reference not in known:
        return schema
    rest = {key: value for key, value in schema.items() if key != "$ref"}
    return rest if known[reference] is None else {"$ref": known[reference], **rest}
