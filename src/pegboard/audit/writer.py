"""The writer of the audit: a moment after the first event all that came by then is kept, in one transaction.

Digests and hashes are computed in the audit's own thread, and the database works in its own: the loop only hands over.
While the storage is away, records wait as long as there is room for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from pegboard.audit.composer import AuditBatch, Composer
from pegboard.audit.file import AuditFile
from pegboard.audit.recorder import Recorder
from pegboard.audit.store import AuditStore
from pegboard.config.audit_settings import AuditSettings
from pegboard.log import logger
from pegboard.result import ToolFailure, unavailable
from pegboard.storage.database import StorageError
from pegboard.storage.threads import Threads

# Seconds from the first event to the transaction: with what that takes, a tenth of a second is at stake at most.
DELAY = 0.075
# Seconds between two tries while the storage is away.
RETRY = 1.0
# So many events wait no longer, and are kept at once.
_MOST_AT_ONCE = 4096
_PATIENCE = 10.0
_NOT_RECORDED = "this call cannot be recorded, and every call has to be (audit.strict)"


class AuditWriter:
    """Takes events from the recorder and keeps their records."""

    def __init__(
        self,
        store: AuditStore,
        settings: Callable[[], AuditSettings],
        file: Callable[[], AuditFile | None],
        on_lost: Callable[[int], None],
        on_chain: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._file = file
        self._on_lost = on_lost
        # Told when a chain is full and another begins.
        self._on_chain = on_chain
        self._chain = 1
        self.recorder = Recorder(self._wake, self._lose)
        self._composer: Composer | None = None
        self._thread = Threads("audit", 1)
        self._task: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        # A batch that is not kept yet, the number of its last event, and whoever waits, each for the event of a number.
        self._batch: AuditBatch | None = None
        self._reached = 0
        self._is_writing = False
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        # Why records cannot be kept; None while they are.
        self.problem: str | None = None
        self.file_problem: str | None = None
        self.written = 0

    @property
    def composer(self) -> Composer | None:
        """What knows the chain of this process, once there is one."""
        return self._composer

    def check(self) -> None:
        """Refuse what could not be recorded."""
        if self.problem is not None:
            raise AuditUnavailable(f"{_NOT_RECORDED}: {self.problem}")

    async def settle(self) -> None:
        """Wait until all that was recorded so far is kept; `AuditUnavailable` if that cannot be."""
        if not (len(self.recorder) or self._is_writing or self._batch is not None):
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((self.recorder.last, waiter))
        self._hurry.set()
        await waiter

    async def close(self, patience: float) -> None:
        """Keep what is there, if that does not take too long."""
        self._hurry.set()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=patience)
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        left = len(self.recorder) + (0 if self._batch is None else len(self._batch.rows))
        if left:
            logger().error("audit.lost", records=left, reason=self.problem or "the storage took too long")
        await self._thread.end(patience)

    def _wake(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            while len(self.recorder) or self._batch is not None:
                # From one batch to the next, however busy it is: a transaction costs far more than a record in it.
                await self._pause(RETRY if self._batch is not None else begun + DELAY - loop.time())
                begun = loop.time()
                while await self._write() and len(self.recorder) >= (1 if self._waiting else _MOST_AT_ONCE):
                    pass
        finally:
            self.recorder.sleep()

    async def _pause(self, seconds: float) -> None:
        """Wait so long, or until somebody waits for us."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()

    async def _write(self) -> bool:
        """Keep one batch; whether that was possible."""
        self._hurry.clear()
        self._is_writing = True
        try:
            if self._batch is None:
                self._batch = await self._compose()
                await self._write_file(self._batch)
            await self._store.add(self._batch, _PATIENCE)
        except StorageError as exc:
            self._fail(exc.reason)
            return False
        except Exception as exc:
            # A fault of our own must not end the audit, nor keep anybody waiting.
            self._fail(f"{type(exc).__name__}: {exc}"[:200])
            return False
        finally:
            self._is_writing = False
        self.written += len(self._batch.rows)
        chain = max((head.chain for head in self._batch.heads), default=self._chain)
        self._batch = None
        if self.problem is not None:
            logger().info("audit.recovered")
        self.problem = None
        # Whoever waits, waits for no more than came before: others may go on recording for ever.
        self._tell(None, up_to=self._reached)
        if chain > self._chain:
            self._chain = chain
            self._on_chain()
        return True

    async def _compose(self) -> AuditBatch:
        if self._composer is None:
            self._composer = Composer(await self._store.load_key())
        composer, settings = self._composer, self._settings()
        events, lost = self.recorder.take(_MOST_AT_ONCE)
        self._reached = self.recorder.gone
        try:
            batch = await self._thread.run(lambda: composer.compose(events, lost, settings))
        except Exception:
            self.recorder.lose(len(events) + lost)
            raise
        if batch.unmade:
            self.recorder.lost += batch.unmade
            self._on_lost(batch.unmade)
            self._tell(AuditUnavailable(_NOT_RECORDED), up_to=self._reached)
        return batch

    async def _write_file(self, batch: AuditBatch) -> None:
        file = self._file()
        if file is None:
            return
        try:
            await self._thread.run(lambda: file.append(batch.records()))
        except Exception as exc:
            # Whatever it is, the database is to have them.
            why = exc.strerror if isinstance(exc, OSError) else None
            reason = f"{file.path}: {why or exc}"
            if self.file_problem is None:
                logger().error("audit.file.failed", reason=reason)
            self.file_problem = reason
        else:
            self.file_problem = None

    def _fail(self, reason: str) -> None:
        if self.problem is None:
            logger().error("audit.failed", reason=reason, remark="records wait until they can be kept")
        self.problem = reason
        self._tell(AuditUnavailable(f"{_NOT_RECORDED}: {reason}"))

    def _lose(self, count: int) -> None:
        """Whoever waits for one of those must not take it for kept; which of them it was, nobody knows."""
        self._on_lost(count)
        self._tell(AuditUnavailable(f"{_NOT_RECORDED}: too many at once"), after=self._reached)

    def _tell(self, failure: AuditUnavailable | None, *, after: int = 0, up_to: int | None = None) -> None:
        """Tell whoever waits for an event of these numbers what became of their records."""
        waiting, self._waiting = self._waiting, []
        for number, waiter in waiting:
            if number <= after or (up_to is not None and number > up_to):
                self._waiting.append((number, waiter))
                continue
            if waiter.done():
                continue
            if failure is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(failure)


class AuditUnavailable(ToolFailure):
    """A call that cannot be recorded, where every call has to be."""

    def __init__(self, message: str) -> None:
        error = unavailable(message).error
        super().__init__(error.code, error.message, retryable=True)
