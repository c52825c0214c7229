"""Reads the list of a registry page by page, and goes on later where it had to stop."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime

from pegboard.mcp_registry.client import RegistryClient, RegistryPage
from pegboard.mcp_registry.kept_servers import KeptServers
from pegboard.result import ToolErrorCode, ToolFailure

# No new page is begun after so many seconds; the rest is read at the next search.
BUDGET = 15.0
_MAX_PAGES = 600
# Pages in a row that say nothing new, in a list that is read for the first time: it goes in circles.
_MAX_IDLE_PAGES = 5


class RegistryWalk:
    """One reading of the list into what is kept; `has_changed` says whether there is something to write."""

    def __init__(self, client: RegistryClient, kept: KeptServers, budget: float = BUDGET) -> None:
        self._client = client
        self._kept = kept
        self._until = time.monotonic() + budget
        self.has_changed = False

    async def run(self, words: str) -> None:
        """Read as far as there is time, first what has these words in its name. Raises `ToolFailure`."""
        if self._kept.covered is None and words:
            await self._take(await self._client.page(search=words))
        await self._read_list()

    async def _read_list(self) -> None:
        kept, idle, seen = self._kept, 0, set[str]()
        for _ in range(_MAX_PAGES):
            page = await self._next_page()
            idle = 0 if await self._take(page) else idle + 1
            kept.cursor = page.next_cursor
            is_circle = kept.cursor in seen or (idle >= _MAX_IDLE_PAGES and kept.covered is None)
            if kept.cursor is None or is_circle or kept.is_full:
                self._finish()
                return
            seen.add(kept.cursor)
            if time.monotonic() >= self._until:
                return
        self._finish()

    async def _next_page(self) -> RegistryPage:
        kept = self._kept
        if kept.begun is None or kept.cursor is None:
            kept.begun, kept.cursor, self.has_changed = datetime.now(UTC), None, True
        query = {"updated_since": _timestamp(kept.covered), "include_deleted": "true"} if kept.covered else {}
        try:
            return await self._client.page(kept.cursor, **query)
        except ToolFailure as exc:
            if kept.cursor is None or not _is_refusal(exc):
                raise
        # A place from last week may be one that the registry does not know any more.
        kept.begun, kept.cursor = datetime.now(UTC), None
        return await self._client.page(**query)

    async def _take(self, page: RegistryPage) -> bool:
        # Megabytes are read beside the loop.
        changed = await asyncio.to_thread(lambda: sum(map(self._kept.take, page.records)) > 0)
        self.has_changed |= changed
        return changed

    def _finish(self) -> None:
        self._kept.covered, self._kept.checked = self._kept.begun, datetime.now(UTC)
        self._kept.begun = self._kept.cursor = None
        self.has_changed = True


def _is_refusal(failure: ToolFailure) -> bool:
    return not failure.error.retryable and failure.error.code is ToolErrorCode.UNAVAILABLE


def _timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
