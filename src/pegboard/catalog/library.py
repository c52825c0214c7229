"""The library: every prompt, resource and resource template of every server, under what clients call it."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from pegboard import exactjson
from pegboard.catalog.patterns import Patterns
from pegboard.catalog.template import MAX_TEMPLATES, Template, Uri
from pegboard.log import logger
from pegboard.names import compose, expose
from pegboard.pace import Pace

# A resource that somebody else offers under the same URI is found under this, its server, and its own URI.
ALIAS = "pegboard://"
_MAX_LEARNED = 10_000
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://[^/?#]*)?")


@dataclass(frozen=True, slots=True)
class Entry:
    """A prompt, a resource or a template: what clients call it, whose it is, and what its server calls it."""

    name: str
    server_name: str
    original_name: str
    definition: Mapping[str, Any]
    digest: int
    # The definition as JSON.
    text: bytes = field(default=b"", repr=False, compare=False)

    @property
    def handshake(self) -> None:
        """It is the same in both eras."""
        return

    @property
    def local_only(self) -> bool:
        """What servers offer is for every client."""
        return False


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
        self._patterns = Patterns[Entry]()
        # Whose resources and templates begin with a scheme and an authority, by those; and everybody who has any.
        self._origins: dict[str, set[str]] = {}
        self._keepers: set[str] = set()
        self._learned: OrderedDict[tuple[str, str], str] = OrderedDict()
        self.generation = 0
        # How often an offer changed, how many of these changes are laid out, and of which servers.
        self._changes = self._laid_out = 0
        self._shown: set[str] = set()
        self._arranging = asyncio.Lock()

    def put(self, server: str, offer: Offer, *, prefix: bool = True) -> None:
        """Replace what a server offers."""
        if self._offers.get(server) != (offer, prefix):
            self._offers[server] = offer, prefix
            self._changes += 1
            self._arrange()

    async def put_in_slices(self, server: str, offer: Offer, *, prefix: bool = True, pace: Pace | None = None) -> None:
        """The same for lists of any length: others on the loop have their turns while everything is laid out."""
        if self._offers.get(server) != (offer, prefix):
            self._offers[server] = offer, prefix
            self._changes += 1
        change = self._changes
        async with self._arranging:
            # Whoever was before may have laid out this change as well.
            if self._laid_out < change:
                await (pace or Pace()).through(self._layout())

    def remove(self, server: str) -> None:
        """Forget what a server offers."""
        if self._offers.pop(server, None) is not None:
            self._changes += 1
            self._arrange()

    def knows(self, server: str) -> bool:
        """Whether a server ever said what it offers."""
        return server in self._shown

    def offer(self, server: str) -> Offer:
        """What a server offered last."""
        return self._offers.get(server, (Offer(), True))[0]

    def name_link(self, server: str, uri: str, scope: str = "") -> Generator[None, None, str]:
        """What clients are to call a resource that a server's answer linked to, listed or not; in small steps."""
        if uri.startswith(ALIAS):
            return alias_of(server, uri)
        owner = yield from self._find_claim(uri, _everybody)
        if owner is None:
            # Only whoever got the link is led back by it.
            self._learned[scope, uri] = server
            self._learned.move_to_end((scope, uri))
            while len(self._learned) > _MAX_LEARNED:
                self._learned.popitem(last=False)
        return uri if owner is None or owner == (server, uri) else alias_of(server, uri)

    def find_owner(
        self, uri: str, admits: Callable[[str], bool] | None = None, scope: str = ""
    ) -> Generator[None, None, tuple[str, str] | None]:
        """Server and own URI of a resource, listed or not, among the admitted; `None` where it cannot be told."""
        admits = admits or _everybody
        if claimed := (yield from self._find_claim(uri, admits)):
            return claimed
        learned = self._learned.get((scope, uri))
        return (learned, uri) if learned is not None and learned in self._order() and admits(learned) else None

    def _find_claim(self, uri: str, admits: Callable[[str], bool]) -> Generator[None, None, tuple[str, str] | None]:
        """Who has said by itself that a resource is its own."""
        entry = self.resources.entries.get(uri)
        if entry is not None and admits(entry.server_name):
            return entry.server_name, entry.original_name
        if uri.startswith(ALIAS):
            server, _, own = uri.removeprefix(ALIAS).partition("/")
            if own and server in self._order() and admits(server):
                return server, own
        compared = Uri(uri)
        for template, entry in self._patterns.likely(compared):
            yield
            fits = admits(entry.server_name) and template.matches(compared)
            if fits and self._may_claim(template, entry, uri, admits):
                return entry.server_name, uri
        return None

    def _may_claim(self, template: Template, entry: Entry, uri: str, admits: Callable[[str], bool]) -> bool:
        """Whether a template that matches may speak for a URI: `{+anything}` must not take what is another server's."""
        origin, literal = origin_of(uri), template.literals[0]
        if literal.startswith(origin):
            return True
        # With a fixed scheme it must not have another server's authority; without one, nobody else's anything.
        others = self._origins.get(origin, set[str]()) if origin_of(literal) else self._keepers
        return not any(admits(other) for other in others if other != entry.server_name)

    def _arrange(self) -> None:
        for _ in self._layout():
            pass

    def _layout(self) -> Iterator[None]:
        """Lay out everything anew in small steps; where two servers have the same, the earlier one in the config keeps
        it. What was laid out before is there until the last step."""
        change, ordered = self._changes, dict.fromkeys(self._order())
        offers = {server: self._offers[server] for server in (*ordered, *self._offers) if server in self._offers}
        prompts, resources, templates = Shelf(), Shelf(), Shelf()
        for server, (offer, prefix) in offers.items():
            for raw in offer.prompts:
                yield self._add_prompt(prompts, server, raw, prefix=prefix)
            for raw in offer.resources:
                yield _add_uri(resources, server, raw, "uri")
            for raw in offer.templates[:MAX_TEMPLATES]:
                yield _add_uri(templates, server, raw, "uriTemplate")
        patterns: list[tuple[Template, Entry]] = []
        for entry in templates.entries.values():
            patterns.append((Template.of(entry.name), entry))
            yield
        origins: dict[str, set[str]] = {}
        literals = ((template.literals[0], entry) for template, entry in patterns)
        for text, entry in chain(resources.entries.items(), literals):
            origins.setdefault(origin_of(text), set()).add(entry.server_name)
            yield
        if change < self._laid_out:
            # A later change, which could not wait, is laid out already, and this one with it.
            return
        self.prompts, self.resources, self.templates = prompts, resources, templates
        self._patterns, self._origins = Patterns(patterns), origins
        self._keepers = set[str]().union(*origins.values())
        self._shown, self._laid_out = set(offers), change
        self.generation += 1
        self._on_change()

    def _add_prompt(self, shelf: Shelf, server: str, raw: Any, *, prefix: bool) -> None:
        own = _text(raw, "name")
        if own is None:
            logger().error("catalog.entry.invalid", serverName=server, reason="a prompt without a name")
            return
        name = expose(compose(server, own) if prefix else own, self.max_name_length)
        _add(shelf, name, server, own, {**raw, "name": name})


def origin_of(uri: str) -> str:
    """Scheme and authority of a URI, `scheme:` of one without an authority, nothing where there is no scheme."""
    match = _ORIGIN.match(uri)
    return match[0] if match else ""


def _everybody(_: str) -> bool:
    return True


def alias_of(server: str, uri: str) -> str:
    """What clients call a resource whose URI another server has, too."""
    return f"{ALIAS}{server}/{uri}"


def _add_uri(shelf: Shelf, server: str, raw: Any, key: str) -> None:
    own = _text(raw, key)
    if own is None:
        logger().error("catalog.entry.invalid", serverName=server, reason=f"a resource without {key}")
        return
    holder = shelf.entries.get(own)
    # A name that looks like an alias could be taken for another server's.
    free = (holder is None or holder.server_name == server) and not own.startswith(ALIAS)
    name = own if free else alias_of(server, own)
    _add(shelf, name, server, own, raw if name == own else {**raw, key: name})


def _add(shelf: Shelf, name: str, server: str, own: str, definition: Mapping[str, Any]) -> None:
    if name in shelf.entries:
        logger().error("catalog.entry.duplicate", serverName=server, entry=own)
        return
    try:
        text = exactjson.dump(definition)
    except exactjson.NotJson as exc:
        logger().error("catalog.entry.invalid", serverName=server, reason=str(exc))
        return
    shelf.entries[name] = Entry(name, server, own, definition, hash(text), text)


def _text(raw: Any, key: str) -> str | None:
    value = (exactjson.as_object(raw) or {}).get(key)
    return value if isinstance(value, str) and value else None
