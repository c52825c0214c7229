"""Verification: every record is hashed again, and held against its own hash, its neighbours and its chain's head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pegboard.audit.chain import ChainHead, first_hash, next_hash
from pegboard.audit.record import COLUMNS, AuditRecord
from pegboard.audit.store import AuditStore
from pegboard.storage.database import Row

# Records that are read at once: everybody else has a turn in between.
_PAGE = 500
_HASH = len(COLUMNS)


@dataclass(frozen=True, slots=True)
class AuditFault:
    """The first thing that is wrong."""

    reason: str
    record: str = ""
    process: str = ""
    chain: int = 0


@dataclass(slots=True)
class AuditReport:
    """What a verification found."""

    records: int = 0
    chains: int = 0
    fault: AuditFault | None = None
    heads: list[ChainHead] = field(default_factory=list[ChainHead])

    def to_dict(self) -> dict[str, object]:
        """The report as programs read it."""
        fault = self.fault
        found = {} if fault is None else {"fault": {name: getattr(fault, name) for name in fault.__slots__}}
        return {"ok": fault is None, "records": self.records, "chains": self.chains, **found}


@dataclass(slots=True)
class _Walk:
    """How far a chain was followed."""

    start: ChainHead
    number: int = 0
    hash: str = ""
    last_id: str = ""


@dataclass(frozen=True, slots=True)
class KnownHead:
    """A head that somebody kept elsewhere: behind so many records of a chain, its hash was this."""

    process: str
    chain: int
    records: int
    head: str


class Verification:
    """Walks through all records once, in the order of their ids."""

    def __init__(self, store: AuditStore, known: Sequence[KnownHead] = ()) -> None:
        self._store = store
        self._known = {(each.process, each.chain, each.records): each.head for each in known}
        self._walks: dict[tuple[str, int], _Walk] = {}
        self._report = AuditReport()

    async def run(self) -> AuditReport:
        """Verify everything that is kept; ends at the first fault."""
        report = self._report
        heads = {(head.process, head.chain): head for head in await self._store.heads()}
        report.fault = _gap(list(heads.values()))
        after = ""
        while report.fault is None and (rows := await self._store.page(after, _PAGE)):
            if any((row[1], row[2]) not in heads for row in rows):
                # A chain may have begun meanwhile.
                heads |= {(head.process, head.chain): head for head in await self._store.heads()}
            for row in rows:
                report.fault = self._check(row, heads)
                if report.fault is not None:
                    break
                report.records += 1
            after = rows[-1][0]
        if report.fault is None:
            # Records that came meanwhile moved their heads, and what is kept no longer took its head along.
            report.fault = self._check_ends(await self._store.heads())
        report.chains = len(self._walks)
        return report

    def _check(self, row: Row, heads: dict[tuple[str, int], ChainHead]) -> AuditFault | None:
        identity, process, chain, number = str(row[0]), str(row[1]), int(row[2]), int(row[3])

        def fault(reason: str) -> AuditFault:
            return AuditFault(reason, identity, process, chain)

        head = heads.get((process, chain))
        if head is None:
            return fault("belongs to no chain: it was put in, or its chain was taken out")
        walk = self._walks.setdefault((process, chain), _Walk(head))
        if not walk.number:
            walk.hash = first_hash(process, chain, head.day, head.previous)
        if number != walk.number + 1:
            missing = walk.number + 1
            reason = f"comes where record {missing} of its chain should be: something was taken out or put in"
            return fault(reason)
        value = next_hash(walk.hash, AuditRecord(*row[:_HASH]).canonical())
        if value != row[_HASH]:
            return fault("is not as it was written: it, or the one before it, was changed")
        walk.number, walk.hash, walk.last_id = number, value, identity
        if self._known.pop((process, chain, number), value) != value:
            return fault("differs from a head that was kept elsewhere: the chain was written anew")
        return None

    def _check_ends(self, heads: Sequence[ChainHead]) -> AuditFault | None:
        for head in heads:
            walk = self._walks.get((head.process, head.chain))
            if walk is None:
                return AuditFault("has a head, but no records: all were taken out", "", head.process, head.chain)
            # What came behind the walk is not verified this time.
            if walk.number < walk.start.records:
                reason = "ends too early: its last records were taken out"
                return AuditFault(reason, walk.last_id, head.process, head.chain)
            if walk.number == head.records and walk.hash != head.head:
                return AuditFault("has another head than its last record", walk.last_id, head.process, head.chain)
            if walk.number > head.records:
                reason = "has more records than its head: some were put in"
                return AuditFault(reason, walk.last_id, head.process, head.chain)
        for process, chain, records in self._known:
            if any((head.process, head.chain) == (process, chain) for head in heads):
                reason = f"had {records} records when its head was kept elsewhere: its end was cut off"
                return AuditFault(reason, "", process, chain)
        return _gap(heads)


def _gap(heads: Sequence[ChainHead]) -> AuditFault | None:
    """Chains of one process follow each other; only the oldest are ever taken out."""
    last: dict[str, ChainHead] = {}
    for head in sorted(heads, key=lambda each: (each.process, each.chain)):
        before = last.get(head.process)
        if before is not None and (before.chain + 1, before.head) != (head.chain, head.previous):
            return AuditFault("does not begin where the chain before it ends", "", head.process, head.chain)
        last[head.process] = head
    return None


def read_known_head(text: str) -> KnownHead | None:
    """A head as `audit head` shows it: PROCESS/CHAIN/RECORDS/HASH."""
    parts = text.strip().split("/")
    if len(parts) != 4 or not (parts[1].isdecimal() and parts[2].isdecimal()):
        return None
    return KnownHead(parts[0], int(parts[1]), int(parts[2]), parts[3])
