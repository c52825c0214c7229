"""An own list: everything that a server shows to one sign-in. Who is shown the same shares it."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pegboard import exactjson
from pegboard.catalog.server_tools import Exposure, ServerTools
from pegboard.catalog.stock import ServerOffer, Stock
from pegboard.storage import CatalogRecord
from pegboard.tool import RegisteredTool


@dataclass(frozen=True, slots=True)
class OwnOffer:
    """What a server sent: its tools, and what it has besides."""

    tools: list[Any]
    others: ServerOffer

    def digest(self) -> Generator[None, None, str]:
        """The same for the same lists, in small steps."""
        found = hashlib.sha256()
        for kind in (self.tools, self.others.prompts, self.others.resources, self.others.templates):
            found.update(b"\0")
            yield from _add(found.update, kind)
        return found.hexdigest()


@dataclass(eq=False, slots=True)
class OwnList:
    """What came of that: tools by the names that clients use, and a stock of the rest."""

    digest: str
    offer: OwnOffer
    # How it is shown: with another exposure it is made anew.
    exposure: Exposure
    judged: ServerTools
    stock: Stock
    # The same for the same lists of which the same is served.
    key: str

    @property
    def tools(self) -> Mapping[str, RegisteredTool]:
        """Those that are served."""
        return self.judged.tools

    def record(self, server: str, fingerprint: str) -> CatalogRecord:
        """What is kept of it, under a name that no server has."""
        others = self.offer.others
        return replace(
            _record(f"{server}{LIST}{self.digest}", fingerprint),
            tools=self.offer.tools,
            prompts=list(others.prompts),
            resources=list(others.resources),
            templates=list(others.templates),
        )


# Behind a server's name in what is kept: a list, whose it is, and that there are different ones. The name of a server
# has no space.
LIST, HOLDER, DIFFERENCE = " list:", " user:", " differs"


def holder_record(
    server: str, fingerprint: str, holder: str, digest: str, asked_at: float, ttl: float | None
) -> CatalogRecord:
    """What is kept of a principal: which list is its own, and since when."""
    return replace(_record(f"{server}{HOLDER}{holder}", fingerprint), version=digest, discovered_at=asked_at, ttl=ttl)


def difference_record(server: str, fingerprint: str) -> CatalogRecord:
    """What is kept once people were shown different things."""
    return _record(f"{server}{DIFFERENCE}", fingerprint)


def offer_in(record: CatalogRecord) -> OwnOffer:
    """What a server sent, as it was kept."""
    return OwnOffer(record.tools, ServerOffer(record.prompts or (), record.resources, record.templates))


def _record(name: str, fingerprint: str) -> CatalogRecord:
    return CatalogRecord(
        server=name,
        fingerprint=fingerprint,
        era="",
        version="",
        capabilities={},
        server_info={},
        instructions=None,
        tools=[],
        discovered_at=0.0,
        ttl=None,
    )


def _add(update: Any, items: Iterable[Any]) -> Generator[None]:
    for item in items:
        try:
            update(exactjson.dump(item))
        except exactjson.NotJson:
            # It is left out of every list; what else there is still differs or not.
            update(b"?")
        yield
