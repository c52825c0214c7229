"""What one client sees: its filter, and the list that the filter leaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar, cast

from pegboard import exactjson
from pegboard.names import SEPARATOR, compose, fold_server_name

_LONG = 2000


@dataclass(frozen=True, slots=True)
class Filter:
    """Which tools a client wants and may have: of these servers, with these beginnings. Nothing given means all."""

    servers: frozenset[str] | None = None
    # Each group comes from one place (address, request); a name must satisfy every group.
    prefixes: tuple[tuple[str, ...], ...] = ()
    # It comes from another machine: what is only for the clients of this one does not pass.
    remote: bool = False

    @classmethod
    def of(cls, server: object = None, prefix: object = None) -> Filter:
        """A filter from texts (comma separated) or lists, as addresses and requests carry them."""
        servers, prefixes = _words(server), _words(prefix)
        return cls(
            servers=frozenset(fold_server_name(name) for name in servers) if servers else None,
            prefixes=(tuple(prefixes),) if prefixes else (),
        )

    def within(self, other: Filter) -> Filter:
        """Both filters at once."""
        if self.servers is None or other.servers is None:
            servers = self.servers if other.servers is None else other.servers
        else:
            servers = self.servers & other.servers
        added = tuple(group for group in other.prefixes if group not in self.prefixes)
        return Filter(servers, (*self.prefixes, *added), self.remote or other.remote)

    @property
    def narrows(self) -> bool:
        """Whether somebody chose by servers or names."""
        return self.servers is not None or bool(self.prefixes)

    @property
    def is_long(self) -> bool:
        """Whether there is more to it than anybody needs, so that it is not worth keeping."""
        given = [*(self.servers or ()), *(prefix for group in self.prefixes for prefix in group)]
        return sum(map(len, given)) > _LONG

    def admits(self, entry: Listed) -> bool:
        """Whether a tool or a prompt passes."""
        if self.remote and entry.local_only:
            return False
        if self.servers is not None and entry.server_name not in self.servers:
            return False
        return all(entry.name.startswith(group) for group in self.prefixes)

    def admits_name(self, name: str) -> bool:
        """Whether a tool of this name could pass, be it known or not."""
        if self.servers is not None and name.partition(SEPARATOR)[0] not in self.servers:
            return False
        return all(name.startswith(group) for group in self.prefixes)

    def admits_server(self, name: str) -> bool:
        """Whether anything of this server can pass; resources have no name of ours to begin with anything."""
        if self.servers is not None and name not in self.servers:
            return False
        beginning = compose(name, "")
        return all(
            any(beginning.startswith(prefix) or prefix.startswith(beginning) for prefix in group)
            for group in self.prefixes
        )


EVERYTHING = Filter()


@dataclass(frozen=True, slots=True)
class Sight:
    """Whose list it is: what they filter by, and where the tools are that they loaded."""

    filter: Filter = EVERYTHING
    board: str | None = None


class Listed(Protocol):
    """Something that a client finds in a list: a tool, a prompt, a resource."""

    @property
    def name(self) -> str: ...
    @property
    def server_name(self) -> str | None: ...
    @property
    def definition(self) -> Mapping[str, Any]: ...
    @property
    def digest(self) -> int: ...
    @property
    def text(self) -> bytes: ...
    @property
    def local_only(self) -> bool: ...


T = TypeVar("T", bound=Listed)


@dataclass(frozen=True)
class View(Generic[T]):
    """A list at one moment; two views with the same digest are the same list."""

    items: tuple[T, ...]
    digest: int

    @classmethod
    def of(cls, items: Iterable[T]) -> View[T]:
        """The view of these."""
        listed = tuple(items)
        return cls(listed, hash(tuple((item.name, item.digest) for item in listed)))

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of what is listed."""
        return frozenset(item.name for item in self.items)

    @cached_property
    def definitions_text(self) -> bytes:
        """The definitions as JSON, written once."""
        return _joined(item.text for item in self.items)

    @cached_property
    def handshake_text(self) -> bytes:
        """The same for the handshake era."""
        pairs = zip(self.items, self.definitions, self.handshake_definitions, strict=True)
        return _joined(item.text if own is shown else exactjson.dump(shown) for item, own, shown in pairs)

    @cached_property
    def weight(self) -> int:
        """About how many bytes it takes to keep, its texts included."""
        return sum(2 * len(item.text) + 100 for item in self.items)

    @cached_property
    def definitions(self) -> list[Mapping[str, Any]]:
        """What is listed, as MCP lists it."""
        return [item.definition for item in self.items]

    @cached_property
    def handshake_definitions(self) -> list[Mapping[str, Any]]:
        """The same for the handshake era, where what a tool puts out can only be an object."""
        return [_without_odd_output(definition) for definition in self.definitions]


def _joined(texts: Iterable[bytes]) -> bytes:
    """A JSON list of what is JSON already."""
    return b"[" + b",".join(texts) + b"]"


def _without_odd_output(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = definition.get("outputSchema")
    if not isinstance(schema, dict) or cast("dict[str, Any]", schema).get("type") == "object":
        return definition
    return {key: value for key, value in definition.items() if key != "outputSchema"}


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        return [word.strip() for word in value.split(",") if word.strip()]
    if isinstance(value, (list, tuple)):
        return [word for item in cast("list[object]", value) for word in _words(item)]
    return []
