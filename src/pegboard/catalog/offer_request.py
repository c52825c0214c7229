"""Asks a server what it offers besides tools: prompts, resources and templates."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pegboard.catalog.cuts import Cuts
from pegboard.catalog.stock import ServerOffer
from pegboard.catalog.tool_source import ToolSource
from pegboard.log import logger
from pegboard.result import as_result

# Kinds as an offer has them: how they are asked for, and the member of the answer that they are.
_KINDS = (
    ("prompts", "prompts/list", "prompts"),
    ("resources", "resources/list", "resources"),
    ("templates", "resources/templates/list", "resourceTemplates"),
)


async def ask_offer(source: ToolSource, known: ServerOffer, cuts: Cuts) -> tuple[ServerOffer, set[str]]:
    """What a server offers now. A kind that cannot be had now stays as it was, and is among those that come with it."""
    answers = await asyncio.gather(*(_ask_kind(source, method, field, cuts) for _, method, field in _KINDS))
    found = {kind: answer for (kind, _, _), answer in zip(_KINDS, answers, strict=True)}
    unheard = {kind for kind, answer in found.items() if answer is None}
    items = {kind: getattr(known, kind) if answer is None else answer for kind, answer in found.items()}
    return ServerOffer(**items), unheard


async def _ask_kind(source: ToolSource, method: str, field: str, cuts: Cuts) -> Sequence[Any] | None:
    result = await as_result(source.list_kind(method, field))
    if result.error is not None:
        # Many servers that have resources have no templates, and say so in this way. That one cannot be reached at all
        # is told of its tools.
        if source.is_connected:
            reason = result.error.message
            logger().info("catalog.kind.failed", serverName=source.spec.name, kind=field, reason=reason)
        return None
    cuts.record(source.spec.name, field, result.data.cut if result.data is not None else None)
    return result.data.items if result.data is not None else ()
