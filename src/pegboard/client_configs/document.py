"""The text of a client's config file: which servers it has, and the text with one more, or one less."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pegboard.client_configs.program import FileFormat, KeyPath
from pegboard.client_configs.toml_text import TomlEditError, append_table, cut_table, read_toml, without
from pegboard.config import jsonc
from pegboard.config.jsonc import JsoncError
from pegboard.exactjson import as_object

_BOM = "\ufeff"


class ClientFileError(Exception):
    """A config file of a client cannot be read or changed; the message says which and why."""


@dataclass(frozen=True)
class ServerDocument:
    """A config file's text, in its format, with the key path of the servers in it."""

    text: str
    format: FileFormat
    key: KeyPath
    # The client reads JSON without comments only.
    is_strict: bool = False

    def check(self) -> None:
        """Raise `ClientFileError` with place and reason unless it can be read, and can hold servers."""
        holder: Any = self.data()
        for at, part in enumerate(self.key):
            holder = holder.get(part)
            if holder is None:
                return
            if as_object(holder) is None:
                raise ClientFileError(f"{'.'.join(self.key[: at + 1])} is {_kind(holder)}, and must be an object")

    def data(self) -> dict[str, Any]:
        """Everything that the file says; nothing in an empty one."""
        return self._data

    @cached_property
    def _data(self) -> dict[str, Any]:
        if not self.text.removeprefix(_BOM).strip():
            return {}
        try:
            value = read_toml(self.text) if self.format == "toml" else self._json()
        except (JsoncError, ValueError) as exc:
            raise ClientFileError(f"it cannot be read: {exc}") from None
        found = as_object(value)
        if found is None:
            raise ClientFileError(f"it holds {_kind(value)}, and must hold an object")
        return found

    def servers(self) -> dict[str, Any]:
        """The entries by name."""
        holder: dict[str, Any] = self.data()
        for part in self.key:
            holder = as_object(holder.get(part)) or {}
        return holder

    def put(self, name: str, entry: Mapping[str, Any]) -> str:
        """The text with this entry, in place of one of the same name, else behind the others."""
        path = (*self.key, name)
        try:
            if self.format == "toml":
                base = cut_table(self.text, path) if name in self.servers() else self.text
                return append_table(base, path, entry)
            return self._put_json(path, dict(entry))
        except (TomlEditError, JsoncError, KeyError, ValueError) as exc:
            raise ClientFileError(str(exc)) from None

    def take_out(self, names: Collection[str]) -> str:
        """The text without these entries; an object that is empty then stays."""
        document = self
        try:
            for name in names:
                document = replace(document, text=_text_without(document, name))
        except (TomlEditError, JsoncError, KeyError) as exc:
            raise ClientFileError(str(exc)) from None
        return document.text

    def drop_empty_section(self) -> str:
        """The text without the object that would hold the servers, if it holds none."""
        if self.servers() or self.format == "toml":
            return self.text
        try:
            return jsonc.remove(self.text, self.key)
        except KeyError:
            return self.text

    def rest(self, names: Collection[str]) -> dict[str, Any]:
        """What it says beside these entries, and beside the objects that hold nothing else."""
        data = self.data()
        for name in names:
            data = without(data, (*self.key, name))
        return without_empty(data, self.key)

    def _json(self) -> object:
        try:
            return _strict_json(self.text)
        except (ValueError, RecursionError) as exc:
            value = jsonc.parse(self.text).value
            if self.is_strict:
                reason = f"it is not strict JSON, so that the client cannot read it either: {exc}"
                raise ClientFileError(reason) from None
            return value

    def _put_json(self, path: KeyPath, entry: dict[str, Any]) -> str:
        holder: Any = self.data()
        for at, part in enumerate(path[:-1]):
            if part in holder and holder[part] is None:
                # `"mcpServers": null` has no place for an entry.
                value: Any = entry
                for key in reversed(path[at + 1 :]):
                    value = {key: value}
                return jsonc.set_value(self.text, path[: at + 1], value)
            holder = holder.get(part) or {}
        return jsonc.set_value(self.text, path, entry)


def _text_without(document: ServerDocument, name: str) -> str:
    if document.format == "toml":
        return cut_table(document.text, (*document.key, name))
    left = replace(document, text=jsonc.remove(document.text, (*document.key, name)))
    if not left.servers():
        # `{}` became lines when the entry was added: if it did, it is `{}` again.
        empty = replace(document, text=jsonc.set_value(left.text, document.key, {}))
        if empty.put(name, document.servers()[name]) == document.text:
            return empty.text
    return left.text


def _strict_json(text: str) -> object:
    """JSON by Python's own reader, forty times as fast as the one that knows places; a large file is read often."""
    return json.loads(text.removeprefix(_BOM), object_pairs_hook=_object, parse_constant=_refuse_constant)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key stands twice in an object")
    return members


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def without_empty(data: dict[str, Any], key: KeyPath) -> dict[str, Any]:
    """The data without the objects of a key path that hold nothing."""
    holder: Any = data
    for part in key:
        holder = (as_object(holder) or {}).get(part)
    return without(data, key) if not holder else data


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case list():
            return "a list"
        case str():
            return "a text"
        case dict():
            return "an object"
        case bool():
            return "true or false"
        case _:
            return "a number"
