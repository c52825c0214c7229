"""Layout: the prompts, resources and templates of all servers, under names that no two of them share."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Generator, Iterable, Mapping
from itertools import takewhile

from pegboard.catalog.patterns import Patterns
from pegboard.catalog.stock import CatalogEntry, Stock
from pegboard.catalog.uri_template import Uri, fold_host, scheme_of
from pegboard.names import foreign_prefix

# With how many templates of earlier servers a listed resource is compared: with more that begin as it does, it counts
# as theirs.
_MOST_COMPARED = 4


class Layout:
    """Everything at one moment. Of two servers with the same, the earlier one in the config keeps the name."""

    def __init__(self, stocks: Mapping[str, Stock] | None = None) -> None:
        # In the order of the config.
        self.stocks = stocks or {}
        self.prompts: dict[str, CatalogEntry] = {}
        self.resources: dict[str, CatalogEntry] = {}
        # Those whose scheme or host is not in lower case, by what they are in lower case.
        self.folded: dict[str, CatalogEntry] = {}
        self.templates: dict[str, CatalogEntry] = {}
        self.patterns = Patterns[CatalogEntry]()
        # Prompts that are left out, by server, and why.
        self.left_out: dict[str, dict[str, str]] = {}
        # Aliased resources by the URIs that they have at their servers.
        self.aliased: dict[str, list[CatalogEntry]] = {}
        # Whether anything has another name here because of another server.
        self.has_aliases = False
        # How URIs of templates begin, by their scheme. Those of a template without one yield to all others.
        self._beginnings: dict[str, _Beginnings] = {}

    def fill(self, configured: Collection[str]) -> Generator[None, None, None]:
        """Take in the stock of each server."""
        prefixed = set[str]().union(*(stock.prompts for stock in self.stocks.values() if stock.prefix))
        yield
        for stock in self.stocks.values():
            yield from self._add_prompts(stock, configured, prefixed)
            yield from self._add_resources(stock)
            yield from self._add_templates(stock)

    def find_resources(self, uri: str) -> Iterable[CatalogEntry]:
        """The resources that a URI stands for, the one that is written exactly so first."""
        folded = fold_host(uri)
        found = (self.resources.get(uri), self.resources.get(folded), self.folded.get(folded))
        return (entry for entry in found if entry is not None)

    def owners_before(self, server: str, origin: str) -> Iterable[str]:
        """Every server before this one that has resources or templates of this scheme and authority."""
        before = takewhile(lambda stock: stock.server != server, self.stocks.values())
        return (stock.server for stock in before if origin in stock.origins)

    def keepers_but(self, server: str) -> Iterable[str]:
        """Every other server with resources or templates."""
        return (other for other, stock in self.stocks.items() if stock.has_resources and other != server)

    def _add_prompts(
        self, stock: Stock, configured: Collection[str], prefixed: Collection[str]
    ) -> Generator[None, None, None]:
        if stock.prefix and self.prompts.keys().isdisjoint(stock.prompts):
            self.prompts.update(stock.prompts)
            yield
            return
        for name, entry in stock.prompts.items():
            own = entry.original_name
            if not stock.prefix and (owner := foreign_prefix(own, stock.server, configured)):
                self._leave_out(stock.server, own, f"its name is one of server {owner}'s: the server needs a prefix")
            elif name in self.prompts or (not stock.prefix and name in prefixed):
                self._leave_out(stock.server, own, "another server has a prompt of this name")
            else:
                self.prompts[name] = entry
            yield

    def _add_resources(self, stock: Stock) -> Generator[None, None, None]:
        if self._beginnings.keys().isdisjoint(stock.schemes) and self._are_new(stock):
            self.resources.update(stock.resources)
            self.folded.update(stock.folded)
            yield
            return
        for name, entry in stock.resources.items():
            others = (other for other in self.find_resources(name) if other.server_name != stock.server)
            if next(others, None) is not None or (yield from self._is_described(name)):
                alias, self.has_aliases = stock.alias(entry, "uri"), True
                self.aliased.setdefault(fold_host(name), []).append(alias)
                self.resources[alias.name] = alias
                continue
            self.resources[name] = entry
            if (folded := fold_host(name)) != name:
                self.folded.setdefault(folded, entry)

    def _are_new(self, stock: Stock) -> bool:
        """Whether nobody before has any of a server's resources."""
        is_new = self.resources.keys().isdisjoint(stock.resources) and self.folded.keys().isdisjoint(stock.resources)
        known = self.resources.keys() | self.folded.keys() if stock.folded else ()
        return is_new and stock.folded.keys().isdisjoint(known)

    def _add_templates(self, stock: Stock) -> Generator[None, None, None]:
        for template, entry in stock.patterns:
            yield
            taken = self._beginnings.get(template.scheme)
            is_taken = entry.name in self.templates or (taken is not None and taken.overlap(template.beginning))
            named = stock.alias(entry, "uriTemplate") if is_taken else entry
            self.has_aliases = self.has_aliases or is_taken
            self.templates[named.name] = named
        groups: dict[str, set[str]] = {}
        for template, _ in stock.patterns:
            groups.setdefault(template.scheme, set()).add(template.beginning)
        groups.pop("", None)
        for scheme, beginnings in groups.items():
            self._beginnings.setdefault(scheme, _Beginnings()).add(beginnings)
        self.patterns.add(stock.patterns)
        yield

    def _is_described(self, name: str) -> Generator[None, None, bool]:
        """Whether a template of an earlier server stands for a resource."""
        yield
        if scheme_of(name) not in self._beginnings:
            return False
        uri = Uri(name)
        likely = [template for template, _ in self.patterns.likely(uri) if template.scheme]
        if len(likely) > _MOST_COMPARED:
            return True
        for template in likely:
            yield
            if template.matches(uri):
                return True
        return False

    def _leave_out(self, server: str, own: str, reason: str) -> None:
        self.left_out.setdefault(server, {})[own] = reason


class _Beginnings:
    """Texts that URIs begin with; of two of which one begins with the other, the shorter."""

    def __init__(self) -> None:
        self._sorted: list[str] = []

    def overlap(self, text: str) -> bool:
        """Whether a URI can begin with this text and with one of those."""
        at = bisect_right(self._sorted, text)
        before, behind = self._sorted[max(at - 1, 0) : at], self._sorted[at : at + 1]
        return any(map(text.startswith, before)) or any(other.startswith(text) for other in behind)

    def add(self, texts: Iterable[str]) -> None:
        shortest: list[str] = []
        for text in sorted({*self._sorted, *texts}):
            if not shortest or not text.startswith(shortest[-1]):
                shortest.append(text)
        self._sorted = shortest
