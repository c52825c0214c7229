"""A view: what one client sees, by its filter, and the list that the filter leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar, cast

from pegboard.access.access import Access
from pegboard.access.rule import RuledItem
from pegboard.names import MOST_IN_FILTER, SEPARATOR, compose, fold_server_name
from pegboard.result import invalid

R = TypeVar("R", bound=RuledItem)
_LONG = 2000
# About how large a piece of a list is.
_PIECE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Filter:
    """Which tools a client wants and may have: of these servers, with these beginnings. Nothing given means all."""

    servers: frozenset[str] | None = None
    # Each group comes from one place (address, request); a name must satisfy every group.
    prefixes: tuple[tuple[str, ...], ...] = ()
    # It comes from another machine: what is only for the clients of this one does not pass.
    remote: bool = False
    # What its principal may have; nothing says otherwise where it is left out.
    access: Access | None = None
    # It is a key of every call, and the same for all calls of a client.
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.servers, self.prefixes, self.remote, self.access)))

    def __hash__(self) -> int:
        return self._hash

    @classmethod
    def of(cls, server: object = None, prefix: object = None) -> Filter:
        """A filter from texts (comma separated) or lists, as addresses and requests carry them; `ToolFailure` if it is
        longer than anybody needs."""
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
        return Filter(servers, (*self.prefixes, *added), self.remote or other.remote, self.access or other.access)

    def for_remote(self) -> Filter:
        """The same for a client on another machine."""
        return replace(self, remote=True)

    @property
    def narrows(self) -> bool:
        """Whether somebody chose by servers or names."""
        return self.servers is not None or bool(self.prefixes)

    @property
    def holder(self) -> str | None:
        """Whose sign-ins decide what servers show, where there are servers that everybody signs in to."""
        return None if self.access is None or self.access.sight is None else self.access.sight.principal_id

    @property
    def content_key(self) -> Hashable:
        """The same for all filters that leave the same: it does not matter who they are, but what they are shown."""
        if self.access is None or self.access.sight is None:
            return self
        return self.servers, self.prefixes, self.remote, self.access.rules, self.access.sight.key

    def pick(self, item: R) -> R:
        """The item as whoever has this filter is shown it."""
        return item if self.access is None or self.access.sight is None else self.access.sight.pick(item)

    @property
    def is_long(self) -> bool:
        """Whether there is more to it than anybody needs, so that it is not worth keeping."""
        given = [*(self.servers or ()), *(prefix for group in self.prefixes for prefix in group)]
        return sum(map(len, given)) > _LONG

    def admits(self, entry: ListItem) -> bool:
        """Whether a tool or a prompt passes."""
        if self.remote and entry.local_only:
            return False
        if self.access is not None and not self.access.admits(entry):
            return False
        if self.servers is not None and entry.server_name not in self.servers:
            return False
        return all(entry.name.startswith(group) for group in self.prefixes)

    def admits_name(self, name: str) -> bool:
        """Whether a tool of this name could pass, be it known or not."""
        if self.access is not None and not self.access.admits_name(name):
            return False
        if self.servers is not None and name.partition(SEPARATOR)[0] not in self.servers:
            return False
        return all(name.startswith(group) for group in self.prefixes)

    def admits_server(self, name: str) -> bool:
        """Whether anything of this server can pass."""
        if self.access is not None and not self.access.admits_server(name):
            return False
        return self._chooses_server(name)

    def admits_resources(self, name: str) -> bool:
        """Whether the resources of this server pass, which have no name of ours to begin with anything."""
        return self.knows_server(name) and self._chooses_server(name)

    def admits_prompt(self, server: str, name: str) -> bool:
        """Whether a prompt of this server could pass by this name, be it known or not."""
        return self.admits_resources(server) and self.admits_name(name)

    def knows_server(self, name: str) -> bool:
        """Whether its principal may know of the resources of this server, whatever the client chose."""
        return self.access is None or self.access.admits_resources(name)

    def knows_whole_server(self, name: str) -> bool:
        """Whether nothing of this server is hidden from its principal, so that all that is known of it may be told."""
        return self.access is None or self.access.admits_whole_server(name)

    def admits_messages(self, name: str) -> bool:
        """Whether this server may be sent what nobody here understands, and so may change anything."""
        return self.admits_resources(name) and not (self.access is not None and self.access.is_read_only)

    def _chooses_server(self, name: str) -> bool:
        if self.servers is not None and name not in self.servers:
            return False
        beginning = compose(name, "")
        return all(
            any(beginning.startswith(prefix) or prefix.startswith(beginning) for prefix in group)
            for group in self.prefixes
        )


EVERYTHING = Filter()


@dataclass(frozen=True, slots=True)
class ListKey:
    """Whose list it is: what they filter by, where the tools are that they loaded, and how much they want to be shown
    (`expose`, where their address says so)."""

    filter: Filter = EVERYTHING
    board: str | None = None
    expose: str | None = None

    @property
    def content_key(self) -> Hashable:
        """The same for all keys of the same list."""
        return self if self.filter.holder is None else (self.filter.content_key, self.board, self.expose)


class ListItem(Protocol):
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
    def handshake(self) -> tuple[Mapping[str, Any], bytes] | None: ...
    @property
    def local_only(self) -> bool: ...
    @property
    def original_name(self) -> str: ...
    @property
    def toolset(self) -> str | None: ...
    @property
    def claims_read_only(self) -> bool: ...


T = TypeVar("T", bound=ListItem)


@dataclass(frozen=True)
class View(Generic[T]):
    """A list at one moment; two views with the same digest are the same list."""

    items: tuple[T, ...] = field(repr=False)
    digest: int
    # About how many bytes it takes to keep, its texts included.
    weight: int = 0

    @classmethod
    def of(cls, items: Iterable[T]) -> View[T]:
        """The view of these."""
        draft = Draft[T]()
        for item in items:
            draft.add(item)
        return draft.view()

    async def write(self) -> None:
        """Write the pieces of a long list, once, with a turn for everybody else after each."""
        async with self._writing:
            if "handshake_pieces" in vars(self):
                return
            # Where the properties keep what they have made.
            vars(self)["definition_pieces"] = await _in_turns(_pieces(self._texts()))
            if self._is_same_in_handshake:
                _ = self.handshake_pieces
            else:
                vars(self)["handshake_pieces"] = await _in_turns(_pieces(self._handshake_texts()))

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of what is listed."""
        return frozenset(item.name for item in self.items)

    @cached_property
    def definition_pieces(self) -> list[bytes]:
        """The definitions as JSON, written once; what to write one after another."""
        return list(_pieces(self._texts()))

    @cached_property
    def handshake_pieces(self) -> list[bytes]:
        """The same for the handshake era."""
        return self.definition_pieces if self._is_same_in_handshake else list(_pieces(self._handshake_texts()))

    @cached_property
    def definitions(self) -> list[Mapping[str, Any]]:
        """What is listed, as MCP lists it."""
        return [item.definition for item in self.items]

    @cached_property
    def handshake_definitions(self) -> list[Mapping[str, Any]]:
        """The same for the handshake era, where what a tool puts out can only be an object."""
        return [item.handshake[0] if item.handshake else item.definition for item in self.items]

    @cached_property
    def _writing(self) -> asyncio.Lock:
        return asyncio.Lock()

    @cached_property
    def _is_same_in_handshake(self) -> bool:
        return not any(item.handshake for item in self.items)

    def _texts(self) -> Iterator[bytes]:
        return (item.text for item in self.items)

    def _handshake_texts(self) -> Iterator[bytes]:
        return (item.handshake[1] if item.handshake else item.text for item in self.items)


class Draft(Generic[T]):
    """A view in the making: item by item, so that it can be made in slices."""

    def __init__(self) -> None:
        self._items: list[T] = []
        self._digest = self._weight = 0

    def add(self, item: T) -> None:
        """One more."""
        self._items.append(item)
        self._digest = hash((self._digest, item.name, item.digest))
        self._weight += 2 * len(item.text) + 100

    def view(self) -> View[T]:
        """What there is so far."""
        return View(tuple(self._items), self._digest, self._weight)


def _pieces(texts: Iterable[bytes]) -> Iterator[bytes]:
    """A JSON list of what is JSON already, piece by piece: all of it may be dozens of megabytes."""
    begin, parts, size = b"[", list[bytes](), 0
    for text in texts:
        if size > _PIECE:
            yield b"".join((begin, b",".join(parts)))
            begin, parts, size = b",", [], 0
        parts.append(text)
        size += len(text)
    yield b"".join((begin, b",".join(parts), b"]"))


async def _in_turns(made: Iterable[bytes]) -> list[bytes]:
    pieces: list[bytes] = []
    for piece in made:
        pieces.append(piece)
        await asyncio.sleep(0)
    return pieces


def _words(value: object) -> list[str]:
    words = list(islice(_each_word(value), MOST_IN_FILTER + 1))
    if len(words) > MOST_IN_FILTER:
        raise invalid(f"a filter may have {MOST_IN_FILTER} names")
    return [word for word in words if word]


def _each_word(value: object) -> Iterable[str]:
    if isinstance(value, str):
        # Of a long text no more is taken apart than is needed to know that it is too long.
        yield from map(str.strip, value.split(",", MOST_IN_FILTER))
    elif isinstance(value, (list, tuple)):
        for item in cast("list[object]", value):
            yield from _each_word(item)
