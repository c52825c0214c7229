"""The library: every prompt, resource and resource template of every server, under what clients call it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pegboard import exactjson
from pegboard.catalog.template import Template
from pegboard.log import logger
from pegboard.names import compose, expose

# A resource that somebody else offers under the same URI is found under this, its server, and its own URI.
ALIAS = "pegboard://"
_MAX_LEARNED = 10_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A prompt, a resource or a template: what clients call it, whose it is, and what its server calls it."""

    name: str
    server_name: str
    original_name: str
    definition: Mapping[str, Any]
    digest: int


@dataclass(frozen=True, slots=True)
class Offer:
    """What a server offers besides tools, as it sent it."""

    prompts: Sequence[Any] = ()
    resources: Sequence[Any] = ()
    templates: Sequence[Any] = ()


@dataclass(slots=True)
class Shelf:
    """All entries of one kind, by the name that clients use, in the order they are listed."""

    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    # (server, own name) → name, where the two differ.
    aliases: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])


class Library:
    """Prompts, resources and templates under one roof. Nothing here connects."""

    def __init__(
        self,
        *,
        max_name_length: int = 48,
        order: Callable[[], Iterable[str]] = tuple,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.max_name_length = max_name_length
        # Servers in the order of the config: of two with the same URI, the later one's is aliased.
        self._order = order
        self._on_change = on_change
        self._offers: dict[str, tuple[Offer, bool]] = {}
        self.prompts, self.resources, self.templates = Shelf(), Shelf(), Shelf()
        self._patterns: list[tuple[Template, Entry]] = []
        self._learned: OrderedDict[str, str] = OrderedDict()
        self.generation = 0

    def put(self, server: str, offer: Offer, *, prefix: bool = True) -> None:
        """Replace what a server offers."""
        if self._offers.get(server) != (offer, prefix):
            self._offers[server] = offer, prefix
            self._arrange()

    def remove(self, server: str) -> None:
        """Forget what a server offers."""
        if self._offers.pop(server, None) is not None:
            self._arrange()

    def offer(self, server: str) -> Offer:
        """What a server offered last."""
        return self._offers.get(server, (Offer(), True))[0]

    def learn(self, server: str, uri: str) -> None:
        """A server's answer linked to this resource, which no list may ever name."""
        if uri in self.resources.entries:
            return
        self._learned[uri] = server
        self._learned.move_to_end(uri)
        while len(self._learned) > _MAX_LEARNED:
            self._learned.popitem(last=False)

    def owner(self, uri: str) -> tuple[str, str] | None:
        """Server and own URI of a resource, listed or not; `None` where it cannot be told."""
        if entry := self.resources.entries.get(uri):
            return entry.server_name, entry.original_name
        if uri.startswith(ALIAS):
            server, _, own = uri.removeprefix(ALIAS).partition("/")
            if server in self._order() and own:
                return server, own
        if learned := self._learned.get(uri):
            return learned, uri
        found = max((pair for pair in self._patterns if pair[0].matches(uri)), key=_weight, default=None)
        return None if found is None else (found[1].server_name, uri)

    def name_of(self, server: str, uri: str) -> str:
        """What clients call a server's resource."""
        if (alias := self.resources.aliases.get((server, uri))) is not None:
            return alias
        entry = self.resources.entries.get(uri)
        return uri if entry is None or entry.server_name == server else alias_of(server, uri)

    def _arrange(self) -> None:
        """Lay out everything anew; where two servers have the same, the earlier one in the config keeps it."""
        self.generation += 1
        self.prompts, self.resources, self.templates = Shelf(), Shelf(), Shelf()
        order = [server for server in self._order() if server in self._offers]
        for server in [*order, *(server for server in self._offers if server not in order)]:
            offer, prefix = self._offers[server]
            for raw in offer.prompts:
                self._add_prompt(server, raw, prefix=prefix)
            for raw in offer.resources:
                _add_uri(self.resources, server, raw, "uri")
            for raw in offer.templates:
                _add_uri(self.templates, server, raw, "uriTemplate")
        self._patterns = [(Template.of(entry.name), entry) for entry in self.templates.entries.values()]
        self._on_change()

    def _add_prompt(self, server: str, raw: Any, *, prefix: bool) -> None:
        own = _text(raw, "name")
        if own is None:
            logger().error("catalog.entry.invalid", serverName=server, reason="a prompt without a name")
            return
        name = expose(compose(server, own) if prefix else own, self.max_name_length)
        _add(self.prompts, _entry(name, server, own, {**raw, "name": name}))


def alias_of(server: str, uri: str) -> str:
    """What clients call a resource whose URI another server has, too."""
    return f"{ALIAS}{server}/{uri}"


def _add_uri(shelf: Shelf, server: str, raw: Any, key: str) -> None:
    own = _text(raw, key)
    if own is None:
        logger().error("catalog.entry.invalid", serverName=server, reason=f"a resource without {key}")
        return
    holder = shelf.entries.get(own)
    name = own if holder is None or holder.server_name == server else alias_of(server, own)
    _add(shelf, _entry(name, server, own, raw if name == own else {**raw, key: name}))


def _add(shelf: Shelf, entry: Entry) -> None:
    if entry.name in shelf.entries:
        logger().error("catalog.entry.duplicate", serverName=entry.server_name, entry=entry.original_name)
        return
    shelf.entries[entry.name] = entry
    if entry.name != entry.original_name:
        shelf.aliases[entry.server_name, entry.original_name] = entry.name


def _entry(name: str, server: str, own: str, definition: Mapping[str, Any]) -> Entry:
    return Entry(name, server, own, definition, hash(exactjson.dump(definition)))


def _text(raw: Any, key: str) -> str | None:
    value = (exactjson.as_object(raw) or {}).get(key)
    return value if isinstance(value, str) and value else None


def _weight(pair: tuple[Template, Entry]) -> int:
    return pair[0].weight
