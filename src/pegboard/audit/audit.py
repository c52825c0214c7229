"""The audit of a board: what is recorded, who may read it, and whether it is whole."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path

from pegboard.access.principal import LOCAL, Principal
from pegboard.audit.chain import ChainHead
from pegboard.audit.event import NoteEvent
from pegboard.audit.file import AuditFile
from pegboard.audit.query import AuditQuery
from pegboard.audit.record import REFUSED, AuditRecord
from pegboard.audit.recorder import Recorder
from pegboard.audit.refusals import Refusal, Refusals
from pegboard.audit.retention import Retention, first_day
from pegboard.audit.statistics import Statistics
from pegboard.audit.store import AuditStore
from pegboard.audit.verification import PRUNED, AuditReport, KnownHead, Verification
from pegboard.audit.writer import AuditWriter
from pegboard.config.audit_settings import AuditSettings
from pegboard.log import logger, trace_id
from pegboard.metrics import Metrics
from pegboard.storage.database import StorageError
from pegboard.storage.storage import Storage

# Who does what is noted meanwhile; without anybody it is the user that the gateway runs as.
acting_principal: ContextVar[Principal | None] = ContextVar("acting_principal", default=None)
# Seconds that records have to be kept when a gateway ends.
_GRACE = 3.0
_EVERY_HOUR = 3600.0
_FIRST_LOOK = 30.0


class Audit:
    """Records what happens on a board, if it was told to. Whatever it is asked for by way of reading works in any
    case."""

    def __init__(
        self, storage: Storage, settings: Callable[[], AuditSettings], metrics: Metrics, purpose: str | None
    ) -> None:
        self._storage = storage
        self._settings = settings
        self._metrics = metrics
        # What the board is open for; without a purpose it records nothing.
        self._purpose = purpose
        self._store = AuditStore(storage.database)
        self._writer: AuditWriter | None = None
        self._upkeep: asyncio.Task[None] | None = None
        # Set when a chain is full: that is when there may be too much.
        self._is_more = asyncio.Event()
        self._refusals = Refusals(self._note_refusal, _tell_refusal)
        # Where calls are recorded; None where they are not.
        self.recorder: Recorder | None = None
        # Whether a call that cannot be recorded is refused.
        self.is_strict = False

    @property
    def problem(self) -> str | None:
        """Why records are not kept at the moment, in one short line."""
        writer = self._writer
        if writer is None:
            return None
        lost = f"{writer.recorder.lost} records were lost" if writer.recorder.lost else None
        return writer.problem or lost or writer.file_problem

    @property
    def keeps_values(self) -> bool:
        """Whether values of arguments may stand in records."""
        return self._settings().arguments == "values"

    async def open(self) -> None:
        """Begin to record, if that is wanted."""
        if self._purpose is None:
            return
        self.apply()
        if self._purpose in {"serve", "stdio"}:
            self.note("gateway.started", detail=self._purpose)
            self._upkeep = asyncio.get_running_loop().create_task(self._keep_up())

    async def close(self) -> None:
        """Keep what was recorded."""
        self._refusals.flush()
        if self._upkeep is not None:
            self._upkeep.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._upkeep
            self.note("gateway.stopped", detail=self._purpose or "")
        self.recorder = None
        writer, self._writer = self._writer, None
        if writer is not None:
            await writer.close(_GRACE)

    def apply(self) -> None:
        """Take over settings."""
        settings = self._settings()
        if self._purpose is None:
            return
        if self._writer is None and settings.enabled:
            self._writer = AuditWriter(self._store, self._settings, self._file, self._count_lost, self._is_more.set)
        if self.recorder is not None and not settings.enabled:
            self._refusals.flush()
            self.note("audit.off")
        was_off = self.recorder is None
        self.recorder = self._writer.recorder if self._writer is not None and settings.enabled else None
        self.is_strict = settings.enabled and settings.strict
        if was_off and self._upkeep is not None:
            self.note("audit.on")

    def note(
        self,
        kind: str,
        principal: Principal | None = None,
        *,
        outcome: str = "",
        server: str = "",
        tool: str = "",
        client: str = "",
        session: str = "",
        network: str = "",
        detail: str = "",
    ) -> None:
        """Record something that is no call: a refusal, a change of the config, of tokens or rules. `principal` is
        whoever did it; without one it is whose request is answered, else the user that the gateway runs as. Nothing
        secret may be in it; `session` may be the session's id, of which a digest is kept."""
        if self.recorder is None:
            return
        who = principal or acting_principal.get() or LOCAL
        trace = trace_id.get() or ""
        event = NoteEvent(time.time_ns(), kind, who, outcome, server, tool, client, session, network, trace, detail)
        self.recorder.append(event.cut())

    def note_refusal(self, holder: str, refusal: Refusal) -> None:
        """Record and log that somebody at this address (`share_holder`) was not let in; after the first few in a
        minute, only how many more there were."""
        self._refusals.add(holder, refusal)

    def _note_refusal(self, refusal: Refusal, detail: str) -> None:
        self.note("access", refusal.principal, outcome=refusal.outcome, network=refusal.network, detail=detail)

    def check(self) -> None:
        """Where every call has to be recorded, refuse one that could not be."""
        if not self.is_strict or self._writer is None:
            return
        if self._writer.problem is None and self._storage.problem is not None:
            self._writer.problem = self._storage.problem
            self.note("audit.away")
        self._writer.check()

    async def settle(self) -> None:
        """Wait until all that was recorded so far is kept; `AuditUnavailable` if that cannot be."""
        if self._writer is not None:
            await self._writer.settle()

    async def find(self, query: AuditQuery) -> tuple[list[AuditRecord], str | None]:
        """The records that a query asks for, newest first, and the cursor of the next ones."""
        await self._settle_softly()
        found = await self._store.find(query)
        more = len(found) > query.limit
        return found[: query.limit], found[query.limit - 1].id if more else None

    async def statistics(self, query: AuditQuery, since: float, until: float) -> Statistics:
        """The calls that a query asks for, counted."""
        await self._settle_softly()
        return await self._store.statistics(query, since, until)

    async def heads(self) -> list[ChainHead]:
        """Where every chain stands now, the oldest first."""
        await self._settle_softly()
        return await self._store.heads()

    async def verify(self, known: Sequence[KnownHead] = ()) -> AuditReport:
        """Whether all that is kept is as it was written; `known` are heads that somebody kept elsewhere."""
        await self._settle_softly()
        return await Verification(self._store, known).run()

    async def prune(self) -> int:
        """Take out what is kept no longer; how many chains that was."""
        settings = self._settings()
        if (file := self._file()) is not None:
            await asyncio.to_thread(file.remove_before, first_day(settings.keep, time.time()))
        removed = await Retention(self._store).run(settings)
        for head in removed:
            # Whoever kept its head elsewhere is told that nobody else took it out.
            self.note(PRUNED, LOCAL, detail=str(KnownHead(head.process, head.chain, head.records, head.head)))
        return len(removed)

    async def _settle_softly(self) -> None:
        """Whoever reads sees what was recorded before; what cannot be kept now is not waited for."""
        with contextlib.suppress(Exception):
            await self.settle()

    async def _keep_up(self) -> None:
        wait = _FIRST_LOOK
        next_head = 0.0
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._is_more.wait()
            wait = _EVERY_HOUR
            self._is_more.clear()
            with contextlib.suppress(StorageError, OSError):
                if removed := await self.prune():
                    logger().info("audit.pruned", chains=removed)
            composer = None if self._writer is None else self._writer.composer
            if composer is not None and composer.head.records and time.monotonic() >= next_head:
                next_head = time.monotonic() + _EVERY_HOUR
                # Whoever collects the log has a head that no change of the database takes back.
                logger().info("audit.head", **composer.head.to_dict())

    def _file(self) -> AuditFile | None:
        path = self._settings().file
        return None if path is None else AuditFile(Path(path))

    def _count_lost(self, count: int) -> None:
        if not self._metrics.audit_lost:
            logger().error("audit.lost", records=count, reason=self.problem or "too many at once")
        self._metrics.audit_lost += count


def _tell_refusal(holder: str, refusal: Refusal | None, count: int) -> None:
    """Log it; nothing of a path or of what was brought. Without a refusal it is about many addresses."""
    if refusal is None:
        logger().info("access.refused", address="other addresses", count=count)
        return
    who = {} if refusal.principal.kind == "anonymous" else {"principal": refusal.principal.name}
    reason = refusal.outcome.removeprefix(REFUSED)
    logger().info("access.refused", address=holder or "this machine", reason=reason, count=count, **who)
