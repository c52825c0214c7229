"""Retention: what is older than wanted goes, and then the oldest until the rest is small enough; whole chains at a
time, so that what stays can be verified."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from pegboard.audit.chain import ChainHead
from pegboard.audit.store import AuditStore
from pegboard.config.audit_settings import AuditSettings


class Retention:
    """Takes out what is kept no longer."""

    def __init__(self, store: AuditStore) -> None:
        self._store = store

    async def run(self, settings: AuditSettings, now: float | None = None) -> list[ChainHead]:
        """Take out what is too old or too much; where those chains stood."""
        first = first_day(settings.keep, time.time() if now is None else now)
        heads = await self._store.heads()
        total, removed = sum(head.bytes for head in heads), list[ChainHead]()
        # The newest chain stays, however large.
        for head in heads[:-1]:
            if head.day >= first and total <= settings.bytes:
                break
            await self._store.remove(head)
            total -= head.bytes
            removed.append(head)
        return removed


def first_day(keep: int, now: float) -> str:
    """The first day that is kept: today, and so many before it."""
    return f"{datetime.fromtimestamp(now, UTC) - timedelta(days=keep):%Y-%m-%d}"
