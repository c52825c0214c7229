"""Keeps the tokens of a running gateway as they are in storage, whoever changes them there, and writes down when each
was used last. All of it in the background: no request waits for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress

from pegboard.auth.token_registry import read_tokens
from pegboard.auth.tokens import Tokens
from pegboard.log import logger
from pegboard.storage.database import StorageError
from pegboard.storage.tokens import TokenStore

_LOOK_EVERY = 0.5
# When a token was used last is written as often as this.
_TOUCHES_APART = 60.0
_AWAY = "the tokens that are known stay in force, and no change of tokens is noticed"


class TokenWatch:
    """Follows the tokens in storage. Where that is away, those that are known stay in force."""

    def __init__(
        self,
        store: TokenStore,
        tokens: Tokens,
        *,
        on_removed: Callable[[Collection[str]], Awaitable[None]],
        on_expired: Callable[[Collection[str]], Awaitable[None]],
        on_load: Callable[[], object] = lambda: None,
    ) -> None:
        self._store = store
        self._tokens = tokens
        # Told the ids: of tokens that are gone, once; of those that have expired, at each look.
        self._on_removed = on_removed
        self._on_expired = on_expired
        self._on_load = on_load
        self._version: int | None = None
        self._loading = asyncio.Lock()
        self._is_away = False
        self._unreadable: set[str] = set()
        # By id: when a token was used, as far as that is not written yet; and when that was last written.
        self._used: dict[str, float] = {}
        self._written: dict[str, float] = {}

    @property
    def is_loaded(self) -> bool:
        """Whether it is known which tokens there are."""
        return self._version is not None

    async def catch_up(self) -> None:
        """Take over the tokens in storage if they are others; `StorageError` if that cannot be."""
        version = await self._store.version()
        if version != self._version:
            await self.load()

    async def load(self) -> None:
        """Take over the tokens in storage now; `StorageError` if that cannot be."""
        # In turns, so that what was read before is never taken over later.
        async with self._loading:
            version, rows = await self._store.load_with_version()
            tokens = await asyncio.to_thread(read_tokens, rows)
            self._version = version
            for token in tokens:
                if token.problem and token.id not in self._unreadable:
                    self._unreadable.add(token.id)
                    logger().warning("token.invalid", token=token.name, reason=token.problem)
            removed = self._tokens.replace(tokens)
        self._on_load()
        for token_id in removed:
            self._written.pop(token_id, None)
            self._used.pop(token_id, None)
        if removed:
            await self._on_removed(set(removed))

    async def run(self) -> None:
        """Look again and again; ends when it is cancelled, and writes down what is left to write."""
        try:
            while True:
                await asyncio.sleep(_LOOK_EVERY)
                await self._look()
        finally:
            with suppress(StorageError):
                await self._write_uses(apart=0.0)

    async def _look(self) -> None:
        try:
            if expired := self._tokens.list_expired():
                await self._on_expired({token.id for token in expired})
            if await self._store.version() != self._version:
                await self.load()
            await self._write_uses(_TOUCHES_APART)
        except StorageError as exc:
            if not self._is_away:
                logger().warning("tokens.storage.away", reason=exc.reason, remark=_AWAY)
            self._is_away = True
        except Exception as exc:
            # Whatever it is: a gateway that follows its tokens no more would let in whoever was removed.
            logger().error("tokens.failed", error=type(exc).__name__)
        else:
            if self._is_away:
                logger().info("tokens.storage.back")
            self._is_away = False

    async def _write_uses(self, apart: float) -> None:
        now = time.time()
        self._used |= dict.fromkeys(self._tokens.take_used(), now)
        last = self._written.get
        due = {token_id: used for token_id, used in self._used.items() if now - last(token_id, 0.0) >= apart}
        if not due:
            return
        try:
            await self._store.touch(due)
        except StorageError as exc:
            # Others write just now: the next time will do.
            if not exc.is_busy:
                raise
            return
        for token_id in due:
            self._written[token_id] = now
            self._used.pop(token_id, None)
