"""Memories into a file and out of it: JSON, one memory a line; or the file of npm's `server-memory`.

Each line says itself of which kind it is, so any file of either kind can be read, and files can be joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pegboard import exactjson
from pegboard.result import ToolErrorCode, ToolFailure, invalid
from pegboard.storage.database import StorageError
from pegboard.toolsets.memory.graph import ENTITY, RELATION, KnowledgeGraph, rows_of
from pegboard.toolsets.memory.memories import Memories
from pegboard.toolsets.memory.saved import Saved

Format: TypeAlias = Literal["pegboard", "server-memory"]

_FORMAT, _VERSION = "pegboard-memories", 1
_BATCH = 500
_MOST_PROBLEMS = 20
_Read: TypeAlias = tuple[int, Saved | ToolFailure]


@dataclass(frozen=True, slots=True)
class ImportProblem:
    """What is wrong with a line."""

    line: int
    message: str


@dataclass(slots=True)
class Imported:
    """What became of the lines of a file, and the first problems."""

    added: int = 0
    replaced: int = 0
    skipped: int = 0
    invalid: int = 0
    problems: list[ImportProblem] = field(default_factory=list[ImportProblem])

    def refuse(self, line: int, failure: ToolFailure) -> None:
        """Count a line that cannot be kept."""
        self.invalid += 1
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(ImportProblem(line, failure.error.message))

    def to_dict(self) -> dict[str, Any]:
        """As it is shown everywhere."""
        return {
            "added": self.added,
            "replaced": self.replaced,
            "skipped": self.skipped,
            "invalid": self.invalid,
            "problems": [{"line": each.line, "message": each.message} for each in self.problems],
        }


class _UnknownFormat(ToolFailure):
    """No line of the file means what it would mean here."""

    def __init__(self, found: str) -> None:
        message = f"this Pegboard reads files of {_FORMAT} {_VERSION}, and this is one of {found}"
        super().__init__(ToolErrorCode.INVALID_INPUT, message, retryable=False)


async def export_memories(
    memories: Memories,
    write: Callable[[bytes], object],
    *,
    namespace: str | None = None,
    format: Format = "pegboard",
) -> int:
    """Write memories as they are at one moment, line by line, and count them.

    Of all namespaces, or of one; `server-memory` knows no namespaces, so there it is always one. `write` is called in a
    thread of the database's with lines that end in a newline.
    """
    count = 0

    def show(saved: Saved) -> None:
        nonlocal count
        count += 1
        for row in [saved.to_dict()] if format == "pegboard" else rows_of(saved):
            write(_line(row))

    def begin() -> None:
        if count:
            raise StorageError("the connection was lost while memories were written out", "export again")

    if format == "pegboard":
        write(_line({"format": _FORMAT, "version": _VERSION}))
    elif namespace is None:
        namespace = memories.namespace
    await memories.visit(begin, show, namespace)
    return count


async def import_memories(
    memories: Memories,
    lines: Iterable[bytes | str],
    *,
    namespace: str | None = None,
    replace: bool = False,
    dry_run: bool = False,
) -> Imported:
    """Take in the lines of a file, some hundred in a transaction.

    A memory that exists is left alone unless it is to be replaced. `namespace` takes all of them into one namespace;
    with `dry_run` nothing is written. A line that cannot be kept is counted, and the others go on.
    """
    imported = Imported()
    seen: set[tuple[str, str]] = set()
    for batch in _batches(_read_lines(lines, memories, namespace), imported):
        outcomes = await memories.restore([saved for _, saved in batch], replace=replace, dry_run=dry_run)
        for (line, saved), outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, ToolFailure):
                imported.refuse(line, outcome)
                continue
            # Where nothing is written, a key that comes again is not there yet.
            known = dry_run and (saved.namespace, saved.key) in seen
            counted = ("replaced" if replace else "skipped") if known else outcome
            setattr(imported, counted, getattr(imported, counted) + 1)
            if dry_run:
                seen.add((saved.namespace, saved.key))
    return imported


def _batches(read: Iterator[_Read], imported: Imported) -> Iterator[list[tuple[int, Saved]]]:
    batch: list[tuple[int, Saved]] = []
    for line, saved in read:
        if isinstance(saved, ToolFailure):
            imported.refuse(line, saved)
            continue
        batch.append((line, saved))
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _read_lines(lines: Iterable[bytes | str], memories: Memories, namespace: str | None) -> Iterator[_Read]:
    graph = KnowledgeGraph()
    usual = memories.namespace if namespace is None else namespace
    for number, line in enumerate(lines, 1):
        try:
            row = _row(line)
            if row is None or _is_header(row):
                continue
            if row.get("type") in (ENTITY, RELATION):
                graph.read(number, row, usual)
                continue
            if namespace is not None:
                row["namespace"] = namespace
            saved = Saved.read(row, usual, memories.now())
        except _UnknownFormat:
            raise
        except ToolFailure as failure:
            yield number, failure
        else:
            yield number, saved
    yield from graph.memories()


def _row(line: bytes | str) -> dict[str, Any] | None:
    """What a line says, if it says anything."""
    text = line.removeprefix(b"\xef\xbb\xbf").strip() if isinstance(line, bytes) else line.lstrip("\ufeff").strip()
    if not text:
        return None
    try:
        return exactjson.parse_object(text)
    except exactjson.NotJson as exc:
        raise invalid(f"not a JSON object: {exc}") from None


def _is_header(row: dict[str, Any]) -> bool:
    """Whether a line only says what kind of file this is."""
    if "format" not in row or "key" in row:
        return False
    if row["format"] != _FORMAT or row.get("version") != _VERSION:
        raise _UnknownFormat(f"{row['format']} {row.get('version', '')}"[:100])
    return True


def _line(row: dict[str, Any]) -> bytes:
    return exactjson.dump(row) + b"\n"
