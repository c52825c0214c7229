"""`server.json`: how a server describes itself in the registry. Older files are in snake_case, and both are read.

Whatever stands there was written by a stranger: what has the wrong type counts as left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pegboard.exactjson import as_list, as_object

Status = Literal["active", "deprecated", "deleted"]
Format = Literal["string", "number", "boolean", "filepath"]

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)*", re.ASCII)
_MAX_NAME = 200
# So many packages, arguments, variables or headers.
_MAX_ENTRIES = 200
_WORD_START = re.compile(r"[A-Z]")
# Where the registry says of a server what its publisher cannot: under this key, or in older answers under the other.
_META_KEYS = ("io.modelcontextprotocol.registry/official", "x-io.modelcontextprotocol.registry")
_OLD_KEYS: Mapping[str, tuple[str, ...]] = {"registryType": ("registry_name",), "type": ("transport_type",)}


class UnreadableServer(ValueError):  # noqa: N818  it says what the record is
    """A record that is no server; the message says why."""


@dataclass(frozen=True, slots=True)
class RegistryInput:
    """One value of a command line, an environment or a header: fixed, or to be given by whoever runs the server."""

    name: str = ""
    description: str = ""
    is_required: bool = False
    is_secret: bool = False
    is_repeated: bool = False
    is_positional: bool = False
    # Fixed, but for the variables in it.
    value: str | None = None
    default: str | None = None
    placeholder: str = ""
    hint: str = ""
    choices: tuple[str, ...] = ()
    format: Format | None = None
    variables: Mapping[str, RegistryInput] = field(default_factory=dict[str, "RegistryInput"])


@dataclass(frozen=True, slots=True)
class RegistryTransport:
    """How a server is spoken to, be it a remote one or one that a package starts."""

    type: str
    url: str = ""
    headers: tuple[RegistryInput, ...] = ()
    variables: Mapping[str, RegistryInput] = field(default_factory=dict[str, RegistryInput])


@dataclass(frozen=True, slots=True)
class RegistryPackage:
    """A package that starts the server."""

    registry_type: str
    identifier: str
    version: str
    index_url: str
    runtime_hint: str
    transport: RegistryTransport
    runtime_arguments: tuple[RegistryInput, ...]
    package_arguments: tuple[RegistryInput, ...]
    environment: tuple[RegistryInput, ...]


@dataclass(frozen=True, slots=True)
class RegistryServer:
    """A server as its publisher describes it, and what the registry says of it."""

    name: str
    title: str
    description: str
    version: str
    status: Status
    status_message: str
    updated_at: str
    website: str
    repository: str
    packages: tuple[RegistryPackage, ...]
    remotes: tuple[RegistryTransport, ...]

    @property
    def publisher(self) -> str:
        """The namespace, which the registry gives only to whoever owns that account or domain."""
        return self.name.rpartition("/")[0]


def read_server(record: object) -> RegistryServer:
    """The server of a record of the registry's list, in any of its forms; raises `UnreadableServer`."""
    outer = as_object(record) or {}
    said = as_object(outer.get("server")) or outer
    name = _text(said, "name")
    if len(name) > _MAX_NAME or _NAME.fullmatch(name) is None:
        raise UnreadableServer("it has no name that can be used")
    meta = _registry_meta(outer, said)
    return RegistryServer(
        name=name,
        title=_text(said, "title"),
        description=_text(said, "description"),
        version=_text(said, "version") or _text(_object(said, "versionDetail"), "version"),
        status=_status(_text(meta, "status") or _text(said, "status")),
        status_message=_text(meta, "statusMessage"),
        updated_at=_text(meta, "updatedAt") or _text(meta, "publishedAt"),
        website=_text(said, "websiteUrl"),
        repository=_text(_object(said, "repository"), "url"),
        packages=tuple(map(_package, _objects(said, "packages"))),
        remotes=tuple(map(_transport, _objects(said, "remotes"))),
    )


def _registry_meta(outer: Mapping[str, Any], said: Mapping[str, Any]) -> Mapping[str, Any]:
    places = (_object(outer, "_meta"), _object(said, "_meta"), outer)
    found = [_object(place, key) for place in places for key in _META_KEYS]
    return next(filter(None, found), found[0])


def _status(word: str) -> Status:
    return "deleted" if word == "deleted" else "deprecated" if word == "deprecated" else "active"


def _package(said: Mapping[str, Any]) -> RegistryPackage:
    return RegistryPackage(
        registry_type=_text(said, "registryType").lower(),
        identifier=_text(said, "identifier") or _text(said, "name"),
        version=_text(said, "version"),
        index_url=_text(said, "registryBaseUrl"),
        runtime_hint=_text(said, "runtimeHint"),
        transport=_transport(_object(said, "transport")),
        runtime_arguments=tuple(map(_input, _objects(said, "runtimeArguments"))),
        package_arguments=tuple(map(_input, _objects(said, "packageArguments"))),
        environment=tuple(map(_input, _objects(said, "environmentVariables"))),
    )


def _transport(said: Mapping[str, Any]) -> RegistryTransport:
    return RegistryTransport(
        type=_text(said, "type") or "stdio",
        url=_text(said, "url"),
        headers=tuple(map(_input, _objects(said, "headers"))),
        variables=_variables(said),
    )


def _input(said: Mapping[str, Any]) -> RegistryInput:
    return RegistryInput(
        name=_text(said, "name"),
        description=_text(said, "description"),
        is_required=_get(said, "isRequired") is True,
        is_secret=_get(said, "isSecret") is True,
        is_repeated=_get(said, "isRepeated") is True,
        is_positional=_text(said, "type") == "positional",
        value=_scalar(said, "value"),
        default=_scalar(said, "default"),
        placeholder=_text(said, "placeholder"),
        hint=_text(said, "valueHint"),
        choices=tuple(str(choice) for choice in as_list(_get(said, "choices")) or () if isinstance(choice, str | int)),
        format=_format(_text(said, "format")),
        variables=_variables(said),
    )


def _variables(said: Mapping[str, Any]) -> dict[str, RegistryInput]:
    # Their names are the publisher's own, in whatever case.
    found = _object(said, "variables")
    _check_number("variables", len(found))
    return {name: _input(as_object(inner) or {}) for name, inner in found.items()}


def _format(word: str) -> Format | None:
    match word:
        case "string" | "number" | "boolean" | "filepath":
            return word
        case _:
            return None


def _get(said: Mapping[str, Any], key: str) -> Any:
    for name in (key, _WORD_START.sub(lambda found: f"_{found.group().lower()}", key), *_OLD_KEYS.get(key, ())):
        if said.get(name) is not None:
            return said[name]
    return None


def _text(said: Mapping[str, Any], key: str) -> str:
    found = _get(said, key)
    return found if isinstance(found, str) else ""


def _scalar(said: Mapping[str, Any], key: str) -> str | None:
    found = _get(said, key)
    if isinstance(found, bool):
        return str(found).lower()
    return str(found) if isinstance(found, str | int | float) else None


def _object(said: Mapping[str, Any], key: str) -> dict[str, Any]:
    return as_object(_get(said, key)) or {}


def _objects(said: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    listed = as_list(_get(said, key)) or []
    _check_number(key, len(listed))
    return [found for each in listed if (found := as_object(each)) is not None]


def _check_number(key: str, number: int) -> None:
    if number > _MAX_ENTRIES:
        raise UnreadableServer(f"it has {number:,} {key}, more than {_MAX_ENTRIES}")
