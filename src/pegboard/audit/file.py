"""The audit as lines of JSON in files, one a day, for programs that collect them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pegboard.audit.record import AuditRecord, day_of

_OWNER_ONLY = 0o600


def _line(record: AuditRecord) -> bytes:
    try:
        return msgspec.json.encode(record.to_dict())
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError):
        # What somebody called with must not cost others their lines.
        return msgspec.json.encode(msgspec.structs.replace(record, arguments="").to_dict())


class AuditFile:
    """Appends records to the file of their day: `audit.jsonl` becomes `audit-2026-11-17.jsonl`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, records: Sequence[AuditRecord]) -> None:
        """Write records behind what is there; `OSError` where that cannot be."""
        by_day: dict[str, list[bytes]] = {}
        for record in records:
            by_day.setdefault(day_of(record.at), []).append(_line(record))
        for day, lines in by_day.items():
            self._write(self.of_day(day), b"".join(line + b"\n" for line in lines))

    def of_day(self, day: str) -> Path:
        """The file of a day."""
        return self.path.with_name(f"{self.path.stem}-{day}{self.path.suffix}")

    def remove_before(self, day: str) -> None:
        """Remove the files of days that are kept no longer."""
        name = re.compile(rf"{re.escape(self.path.stem)}-(\d{{4}}-\d{{2}}-\d{{2}}){re.escape(self.path.suffix)}")
        if not self.path.parent.is_dir():
            return
        for file in self.path.parent.iterdir():
            match = name.fullmatch(file.name)
            if match is not None and match[1] < day:
                file.unlink(missing_ok=True)

    def _write(self, file: Path, lines: bytes) -> None:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Others may write there as well: each append is at the end, whoever was first.
        handle = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, _OWNER_ONLY)
        try:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":
                # Somebody was killed in the middle of a line.
                lines = b"\n" + lines
            data = memoryview(lines)
            while data:
                data = data[os.write(handle, data) :]
        finally:
            os.close(handle)
