"""Asks a server what it offers besides tools: prompts, resources and templates."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import Enum
from typing import Any

from pegboard.catalog.cuts import Cuts
from pegboard.catalog.stock import ServerOffer
from pegboard.catalog.tool_source import ToolSource
from pegboard.log import logger
from pegboard.result import error_of
from pegboard.servers.errors import ListRefused, UnusableAnswer

# Kinds as an offer has them: how they are asked for, and the member of the answer that they are.
_KINDS = (
    ("prompts", "prompts/list", "prompts"),
    ("resources", "resources/list", "resources"),
    ("templates", "resources/templates/list", "resourceTemplates"),
)


class _Gap(Enum):
    """What came in place of a list."""

    UNHEARD = "nothing"
    REFUSED = "an error of the server's own, or what cannot be used"


async def ask_offer(
    source: ToolSource, known: ServerOffer, *, is_known: bool, key: str | None = None, cuts: Cuts | None = None
) -> tuple[ServerOffer, set[str]]:
    """What a server offers now, to all or to whose connection this is the key of. A kind that cannot be had now stays
    as it was, and is among those that come with it as unheard.

    Where the tools were known before (`is_known`), an error of the server's own is heard: of that kind it has nothing.
    By errors it could else choose what is taken for its first sight. The first time it may still be starting.
    """
    answers = await asyncio.gather(*(_ask_kind(source, method, field, key, cuts) for _, method, field in _KINDS))
    found = {kind: answer for (kind, _, _), answer in zip(_KINDS, answers, strict=True)}
    gaps = {kind: answer for kind, answer in found.items() if isinstance(answer, _Gap)}
    kept = {kind: getattr(known, kind) for kind in gaps}
    items = kept | {kind: answer for kind, answer in found.items() if not isinstance(answer, _Gap)}
    return ServerOffer(**items), {kind for kind, gap in gaps.items() if not (is_known and gap is _Gap.REFUSED)}


async def _ask_kind(
    source: ToolSource, method: str, field: str, key: str | None, cuts: Cuts | None
) -> Sequence[Any] | _Gap:
    try:
        listed = await source.list_kind(method, field, key=key)
    except Exception as exc:
        # Many servers that have resources have no templates, and say so in this way. That one cannot be reached at all
        # is told of its tools.
        if source.is_connected:
            reason = error_of(exc).message
            logger().info("catalog.kind.failed", serverName=source.spec.name, kind=field, reason=reason)
        return _Gap.REFUSED if isinstance(exc, (ListRefused, UnusableAnswer)) else _Gap.UNHEARD
    if cuts is not None:
        cuts.record(source.spec.name, field, listed.cut if listed is not None else None)
    return listed.items if listed is not None else ()
