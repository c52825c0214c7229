"""What is kept of a server in the catalog, and whether a list is the one that is known."""

from __future__ import annotations

import time
from typing import Any

from pegboard import exactjson
from pegboard.catalog.server_tools import ServerTools
from pegboard.catalog.stock import ServerOffer
from pegboard.catalog.tool_source import Introduction
from pegboard.config import ServerSpec
from pegboard.pace import Pace
from pegboard.storage import CatalogRecord


def make_record(
    spec: ServerSpec, hello: Introduction, tools: ServerTools | None, others: ServerOffer | None, ttl: float | None
) -> CatalogRecord:
    """All that a server said, as it said it; `others` is `None` where nobody has asked yet."""
    offer = others or ServerOffer()
    return CatalogRecord(
        server=spec.name,
        fingerprint=spec.fingerprint,
        era=hello.era,
        version=hello.version,
        capabilities=dict(hello.capabilities),
        server_info=dict(hello.server_info),
        instructions=hello.instructions,
        tools=tools.raw if tools else list[Any](),
        discovered_at=tools.discovered_at if tools else time.time(),
        ttl=ttl,
        prompts=None if others is None else list(offer.prompts),
        resources=list(offer.resources),
        templates=list(offer.templates),
    )


async def are_equal(before: list[Any], after: list[Any]) -> bool:
    """Whether two lists, of any length, hold the same."""
    pace = Pace()
    for one, other in zip(before, after, strict=False):
        if not exactjson.is_same(one, other):
            return False
        if pace.is_over:
            await pace.rest()
    return len(before) == len(after)
