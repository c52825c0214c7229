"""Verification: every record is hashed again, and held against its own hash, its neighbours and its chain's head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pegboard.audit.chain import ChainHead, first_hash, next_hash
from pegboard.audit.record import COLUMNS, canonical
from pegboard.audit.store import AuditStore
from pegboard.storage.database import Row

# The kind of a record that says which chain retention took out.
PRUNED = "audit.pruned"
# Records that are read at once: everybody else has a turn in between.
_PAGE = 500
_HASH = len(COLUMNS)
_KIND, _DETAIL = COLUMNS.index("kind"), COLUMNS.index("detail")


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
    # Heads kept elsewhere whose chains retention took out, each with the record that says so.
    removed: list[str] = field(default_factory=list[str])

    def to_dict(self) -> dict[str, object]:
        """The report as programs read it."""
        fault = self.fault
        found = {} if fault is None else {"fault": {name: getattr(fault, name) for name in fault.__slots__}}
        gone = {"removed": self.removed} if self.removed else {}
        return {"ok": fault is None, "records": self.records, "chains": self.chains, **found, **gone}


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

    def __str__(self) -> str:
        return f"{self.process}/{self.chain}/{self.records}/{self.head}"


class Verification:
    """Walks through all records once, in the order of their ids."""

    def __init__(self, store: AuditStore, known: Sequence[KnownHead] = ()) -> None:
        self._store = store
        self._known = {(each.process, each.chain, each.records): each.head for each in known}
        self._walks: dict[tuple[str, int], _Walk] = {}
        # By their chains: what retention took out, and the record that says so.
        self._removed: dict[tuple[str, int], tuple[KnownHead, str]] = {}
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
        value = next_hash(walk.hash, canonical(row[:_HASH]))
        if value != row[_HASH]:
            return fault("is not as it was written: it, or the one before it, was changed")
        walk.number, walk.hash, walk.last_id = number, value, identity
        if row[_KIND] == PRUNED and (gone := read_known_head(str(row[_DETAIL]))) is not None:
            self._removed[gone.process, gone.chain] = gone, identity
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
        return self._check_known({(head.process, head.chain) for head in heads}) or _gap(heads)

    def _check_known(self, there: set[tuple[str, int]]) -> AuditFault | None:
        """What became of heads that were kept elsewhere and that no record was found for."""
        for (process, chain, records), value in self._known.items():
            known = KnownHead(process, chain, records, value)
            if (process, chain) in there:
                reason = f"had {records} records when its head was kept elsewhere: its end was cut off"
                return AuditFault(reason, "", process, chain)
            if (process, chain) not in self._removed:
                reason = "is not there, though its head was kept elsewhere: removed by retention or by hand"
                return AuditFault(reason, "", process, chain)
            removed, record = self._removed[process, chain]
            if removed.records < records or (removed.records == records and removed.head != value):
                reason = "was another one when retention took it out than its head that was kept elsewhere says"
                return AuditFault(reason, record, process, chain)
            self._report.removed.append(f"{known}: taken out by retention, as record {record} says")
        return None


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
