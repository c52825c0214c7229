"""A hash chain: each record's hash is of the one before and of the record, so that none can be changed, put in between
or taken out without all that follow.

There is one for each process and day, and a new one where one has become long: what is kept no longer is taken out as
whole chains. Each begins with the head of the one before. Whoever can write the database can write all of it anew:
that shows only against a head that somebody keeps elsewhere, and so does an end that was cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from pegboard.audit.record import AuditRow

_FORMAT = "pegboard audit 1"
# What a row takes besides the text of its record: its hash, and the database's own.
ROW_BYTES = 120


@dataclass(frozen=True, slots=True)
class ChainHead:
    """Where a chain stands."""

    process: str
    chain: int
    day: str
    # The head of the process's chain before this one.
    previous: str = ""
    first_id: str = ""
    last_id: str = ""
    records: int = 0
    bytes: int = 0
    head: str = ""

    @property
    def hash(self) -> str:
        """What the next record's hash begins with."""
        return self.head or first_hash(self.process, self.chain, self.day, self.previous)

    def extend(self, records: Sequence[tuple[AuditRow, bytes]]) -> tuple[ChainHead, list[str]]:
        """Where the chain stands behind these records, each with what its hash is made of; and their hashes."""
        if not records:
            return self, []
        value, size, hashes = self.hash, self.bytes, list[str]()
        for _, text in records:
            value = next_hash(value, text)
            hashes.append(value)
            size += len(text) + ROW_BYTES
        return replace(
            self,
            first_id=self.first_id or str(records[0][0][0]),
            last_id=str(records[-1][0][0]),
            records=self.records + len(records),
            bytes=size,
            head=value,
        ), hashes

    def start_next(self, day: str) -> ChainHead:
        """The chain that follows this one."""
        return ChainHead(self.process, self.chain + 1, day, self.head)

    def to_dict(self) -> dict[str, object]:
        """What somebody else has to keep to see a cut-off end."""
        return {
            "process": self.process,
            "chain": self.chain,
            "day": self.day,
            "records": self.records,
            "head": self.head,
        }


def first_hash(process: str, chain: int, day: str, previous: str) -> str:
    """What a chain begins with."""
    return sha256(f"{_FORMAT}\n{process}\n{chain}\n{day}\n{previous}".encode()).hexdigest()


def next_hash(before: str, record: bytes) -> str:
    """The hash of a record behind the one with this hash."""
    return sha256(before.encode() + record).hexdigest()
