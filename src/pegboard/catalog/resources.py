"""The resource catalog: every prompt, resource and resource template of every server, under what clients call it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from pegboard.catalog.layout import Layout
from pegboard.catalog.stock import ALIAS, MOST_NAMED, CatalogEntry, ServerOffer, Stock, alias_of
from pegboard.catalog.uri_template import Template, Uri, fold_host, origin_of, scheme_of
from pegboard.faircache import FairCache
from pegboard.log import logger
from pegboard.lru_dict import LruDict
from pegboard.pace import Pace

__all__ = ["ALIAS", "CatalogEntry", "Entries", "ResourceCatalog", "ServerOffer", "alias_of"]

_MAX_LEARNED = 10_000
# For how many sets of servers that somebody may know of everything is laid out at a time.
_MOST_SIGHTS = 32
# Schemes of which pydantic and browsers write the host in lower case, and our own.
_LOWER_CASE_HOSTS = frozenset({"http", "https", "ws", "wss", "ftp", "file", "pegboard"})


@dataclass(slots=True)
class Entries:
    """All entries of one kind, by the name that clients use, in the order they are listed."""

    entries: dict[str, CatalogEntry] = field(default_factory=dict[str, CatalogEntry])


class ResourceCatalog:
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
        # What each server offered last, and what was made of it as soon as it was read.
        self._offers: dict[str, tuple[ServerOffer, bool]] = {}
        self._stocks: dict[str, Stock] = {}
        # What servers offered that are put away, for instance because they are disabled.
        self._put_away: dict[str, Stock] = {}
        # Counts changes of the stocks; up to which of them everything was laid out, one time after the other.
        self._revision = self._laid_out = 0
        self._arranging = asyncio.Lock()
        self._layout = Layout()
        # What servers offer to each principal's own sign-in, by the server and the principal's id.
        self._own: dict[str, Mapping[str, Stock]] = {}
        # What it would be with only some of the servers, or with what is somebody's own, and as of which generation.
        self._sights: LruDict[tuple[object, ...], Layout] = LruDict(_MOST_SIGHTS)
        self._sights_of = 0
        self.prompts, self.resources, self.templates = Entries(), Entries(), Entries()
        # Who gave a link to what nobody claims, by whoever got it.
        self._learned = FairCache[str, str](_MAX_LEARNED)
        self.generation = 0

    async def put(self, server: str, offer: ServerOffer, *, prefix: bool = True, pace: Pace | None = None) -> None:
        """Replace what a server offers; nothing comes of it if by then it offers something else, or was removed."""
        offered = self._offers[server] = offer, prefix
        known, pace = self._stocks.get(server), pace or Pace()
        if known is None or known.prefix != prefix or not await pace.outcome(known.offer.compare(offer)):
            stock = Stock(server, offer, prefix=prefix, max_name_length=self.max_name_length)
            await pace.outcome(stock.fill(known))
            if self._offers.get(server) is not offered:
                return
            self._stocks[server] = stock
            self._put_away.pop(server, None)
            self._revision += 1
        await self._arrange(pace)

    async def remove(self, server: str) -> None:
        """List nothing of a server any more; that it has resources is known as long as it is in the config."""
        self._offers.pop(server, None)
        if (stock := self._stocks.pop(server, None)) is not None:
            configured = frozenset(self._order())
            put_away = {**self._put_away, server: stock}
            self._put_away = {name: each for name, each in put_away.items() if name in configured}
            self._revision += 1
            await self._arrange(Pace())

    async def make_stock(self, server: str, offer: ServerOffer, *, prefix: bool) -> Stock:
        """What a server offers to somebody's own sign-in, read; nothing is listed by that."""
        stock = Stock(server, offer, prefix=prefix, max_name_length=self.max_name_length)
        await Pace().outcome(stock.fill(None))
        return stock

    def put_own(self, server: str, stocks: Mapping[str, Stock]) -> None:
        """Replace what a server offers to each principal's own sign-in, by the principal's id."""
        if self._own.pop(server, {}) != stocks:
            self.generation += 1
        if stocks:
            self._own[server] = stocks
        self._on_change()

    def has_own(self, holder: str | None) -> bool:
        """Whether a principal has been offered anything by its own sign-ins."""
        return holder is not None and any(holder in stocks for stocks in self._own.values())

    async def prompts_for(self, exists: Callable[[str], bool], holder: str | None) -> Mapping[str, CatalogEntry]:
        """The prompts that there are, for whoever has sign-ins of their own."""
        return (await self.see(exists, holder)).prompts if self.has_own(holder) else self.prompts.entries

    def _stocks_for(self, holder: str | None) -> Mapping[str, Stock]:
        """What each server offers to a principal, in the order of the config."""
        if holder is None or not self.has_own(holder):
            return self._layout.stocks
        own = {server: stocks[holder] for server, stocks in self._own.items() if holder in stocks}
        stocks = {**self._layout.stocks, **own}
        return {server: stocks[server] for server in dict.fromkeys((*self._order(), *stocks)) if server in stocks}

    def knows(self, server: str) -> bool:
        """Whether a server ever said what it offers."""
        return server in self._layout.stocks

    def offer(self, server: str) -> ServerOffer:
        """What a server offered last."""
        return self._offers.get(server, (ServerOffer(), True))[0]

    def sight(self, exists: Callable[[str], bool], holder: str | None = None) -> Layout | None:
        """Everything as if there were only the servers that `exists` admits: an alias would tell of the others; and
        with what the holder's own sign-ins show. `None` if that has to be laid out first."""
        has_own = self.has_own(holder)
        if not has_own and not self._layout.has_aliases:
            return self._layout
        if self._sights_of != self.generation:
            self._sights.clear()
            self._sights_of = self.generation
        stocks = self._stocks_for(holder)
        visible = tuple(filter(exists, stocks))
        if not has_own and len(visible) == len(stocks):
            return self._layout
        return self._sights.use(_sight_key(stocks, visible))

    async def see(self, exists: Callable[[str], bool], holder: str | None = None) -> Layout:
        """The same, laid out in slices."""
        return self.sight(exists, holder) or await Pace().outcome(self._lay_out(exists, holder))

    def see_now(self, exists: Callable[[str], bool], holder: str | None = None) -> Layout:
        """The same at once, for whoever cannot wait; most often it is there already."""
        if (found := self.sight(exists, holder)) is None:
            for _ in self._lay_out(exists, holder):
                pass
            found = self.sight(exists, holder)
        return found or self._layout

    def _lay_out(self, exists: Callable[[str], bool], holder: str | None) -> Generator[None, None, Layout]:
        generation, stocks = self.generation, self._stocks_for(holder)
        visible = tuple(filter(exists, stocks))
        layout = Layout({server: stocks[server] for server in visible})
        yield from layout.fill(frozenset(self._order()))
        if generation == self.generation:
            self._sights[_sight_key(stocks, visible)] = layout
        return layout

    def name_link(
        self,
        server: str,
        uri: str,
        scope: str = "",
        exists: Callable[[str], bool] | None = None,
        holder: str | None = None,
    ) -> Generator[None, None, str]:
        """What clients are to call a resource that a server's answer linked to, listed or not; in small steps."""
        exists = exists or _everybody
        if fold_host(uri).startswith(ALIAS):
            return alias_of(server, uri)
        owner = yield from self._find_claim(uri, exists, exists, holder)
        if owner is None and self._giver(uri, scope) in {None, server}:
            # Only whoever got the link is led back by it.
            self._learned.put(scope, fold_host(uri), server)
            return uri
        return uri if owner == (server, uri) else alias_of(server, uri)

    def find_owner(
        self,
        uri: str,
        admits: Callable[[str], bool] | None = None,
        scope: str = "",
        exists: Callable[[str], bool] | None = None,
        holder: str | None = None,
    ) -> Generator[None, None, tuple[str, str] | None]:
        """Server and own URI of a resource, listed or not, among the admitted; `None` where it cannot be told. It is as
        if there were only the servers that `exists` admits, with what the holder's own sign-ins show."""
        admits, exists = admits or _everybody, exists or _everybody
        if claimed := (yield from self._find_claim(uri, admits, exists, holder)):
            return claimed
        giver = self._giver(uri, scope)
        return (giver, uri) if giver is not None and admits(giver) else None

    def may_be_others(
        self,
        uri: str,
        server: str,
        scope: str = "",
        exists: Callable[[str], bool] | None = None,
        holder: str | None = None,
    ) -> Generator[None, None, bool]:
        """Whether a resource is an alias, or anybody but this server has said that it has it: whoever a client filters
        out, or is disabled, included."""
        exists = exists or _everybody
        if fold_host(uri).startswith(ALIAS) or self._giver(uri, scope) not in {None, server}:
            return True
        stocks = (*self._stocks_for(holder).values(), *self._put_away.values())
        compared = Uri(uri)
        for stock in stocks:
            if stock.server != server and exists(stock.server) and (yield from stock.describes(compared)):
                return True
        return False

    def _giver(self, uri: str, scope: str) -> str | None:
        """The first server that gave this link to whoever is in this scope, as long as it is there."""
        giver = self._learned.get(scope, fold_host(uri))
        return giver if giver is not None and giver in self._order() else None

    def _find_claim(
        self, uri: str, admits: Callable[[str], bool], exists: Callable[[str], bool], holder: str | None
    ) -> Generator[None, None, tuple[str, str] | None]:
        """Who has said by itself that a resource is its own."""
        layout = self._layout
        if self.has_own(holder):
            layout = self.sight(exists, holder) or (yield from self._lay_out(exists, holder))
        for entry in layout.find_resources(uri):
            if admits(entry.server_name):
                return entry.server_name, _own_uri(entry, uri)
        folded = fold_host(uri)
        if folded.startswith(ALIAS):
            server, _, own = folded.removeprefix(ALIAS).partition("/")
            if own and server in self._order() and admits(server):
                return server, own
        compared, yielding = Uri(uri), set[str]()
        for template, entry in layout.patterns.likely(compared):
            yield
            server = entry.server_name
            if server in yielding or not admits(server) or not template.matches(compared):
                continue
            if template.scheme:
                if _may_claim(layout, template, server, uri, admits):
                    return server, uri
            elif any(map(admits, layout.keepers_but(server))) or (
                yield from self.may_be_others(uri, server, exists=exists, holder=holder)
            ):
                # `{+anything}` must not take what is another server's.
                yielding.add(server)
            else:
                return server, uri
        # Listed under an alias, for the sake of somebody who does not have it, or is out of sight.
        aliased = (entry for entry in layout.aliased.get(folded, ()) if admits(entry.server_name))
        return next(((entry.server_name, _own_uri(entry, uri)) for entry in aliased), None)

    async def _arrange(self, pace: Pace) -> None:
        """Lay out everything anew, in slices, unless somebody else did so since the last change."""
        revision = self._revision
        async with self._arranging:
            if self._laid_out >= revision:
                return
            revision, configured = self._revision, tuple(self._order())
            ordered = [server for server in configured if server in self._stocks]
            ordered += [server for server in self._stocks if server not in configured]
            layout = Layout({server: self._stocks[server] for server in ordered})
            await pace.outcome(layout.fill(frozenset(configured)))
            before, self._layout, self._laid_out = self._layout, layout, revision
        _log_left_out(layout.left_out, before.left_out)
        self.prompts, self.resources = Entries(layout.prompts), Entries(layout.resources)
        self.templates = Entries(layout.templates)
        self.generation += 1
        self._on_change()


def _own_uri(entry: CatalogEntry, uri: str) -> str:
    """What a server is asked for: its own URI, where clients write the host in lower case by themselves. Elsewhere the
    case may matter to the server, so that it is asked for what the client asked for."""
    return entry.original_name if entry.name == uri or scheme_of(uri) in _LOWER_CASE_HOSTS else uri


def _may_claim(layout: Layout, template: Template, server: str, uri: str, admits: Callable[[str], bool]) -> bool:
    """Whether a template that matches may speak for a URI: with an open host, not for an earlier server's."""
    origin = origin_of(uri)
    return template.origin == origin or not any(map(admits, layout.owners_before(server, origin)))


def _sight_key(stocks: Mapping[str, Stock], visible: tuple[str, ...]) -> tuple[object, ...]:
    # Who is offered the same shares the stock, and so what is laid out with it.
    return tuple((server, id(stocks[server])) for server in visible)


def _everybody(_: str) -> bool:
    return True


def _log_left_out(left_out: Mapping[str, Mapping[str, str]], before: Mapping[str, Mapping[str, str]]) -> None:
    for server, reasons in left_out.items():
        new = {own: reason for own, reason in reasons.items() if own not in before.get(server, {})}
        for own, reason in islice(new.items(), MOST_NAMED):
            logger().error("catalog.entry.duplicate", serverName=server, entry=own[:200], reason=reason)
        if len(new) > MOST_NAMED:
            logger().warning("catalog.entries.left_out", serverName=server, count=len(new), named=MOST_NAMED)
