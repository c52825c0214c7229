"""Backups: what a client's file held before an install, and a note of what the install did to it.

They are in Pegboard's state folder, not beside the file: some clients read every file there, and project folders stay
clean.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pegboard.client_configs.file_change import NEW_FILE, FileChange, digest

_NOTE, _SPENT = ".note.json", ".spent.json"
_MOST_KEPT = 20


@dataclass(frozen=True, slots=True)
class InstallNote:
    """What one install did: to which file, and which part of its text became which other."""

    path: str
    name: str
    # Digests of the whole file; an empty one means that there was none.
    before: str
    after: str
    removed: str
    inserted: str
    # Where the part begins, in characters.
    start: int
    url: str | None = None
    # Folders that had to be made for the file, the innermost first.
    folders: tuple[str, ...] = ()
    # The servers that it took out, which the backup has.
    replaced: tuple[str, ...] = ()

    @property
    def is_new_file(self) -> bool:
        """Whether there was no file before."""
        return not self.before

    def original(self, content: bytes) -> bytes | None:
        """What was there before, if the file still is what the install left; `None` for no file."""
        return None if self.is_new_file else (self.undo(content.decode()) or "").encode()

    def undo(self, text: str) -> str | None:
        """The text with that part as it was before; `None` if it is not there any more, or more than once."""
        end = self.start + len(self.inserted)
        if text[self.start : end] == self.inserted:
            return text[: self.start] + self.removed + text[end:]
        if text.count(self.inserted) != 1 or not self.inserted.strip():
            return None
        return text.replace(self.inserted, self.removed)


def describe_change(change: FileChange, name: str, url: str | None) -> InstallNote:
    """The note of a change of a file."""
    before, after = (change.before or b"").decode(), (change.after or b"").decode()
    start = _common_length(before, after)
    end = _common_length(before[start:][::-1], after[start:][::-1])
    return InstallNote(
        path=str(change.path.resolve()),
        name=name,
        before=digest(change.before),
        after=digest(change.after),
        removed=before[start : len(before) - end],
        inserted=after[start : len(after) - end],
        start=start,
        url=url,
    )


def _common_length(left: str, right: str) -> int:
    """How many characters both begin with, by halving: a file may have millions."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if left[low:middle] == right[low:middle] else (low, middle - 1)
    return low


class Backups:
    """The backups and notes of every client."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, client: str, note: InstallNote, content: bytes | None) -> Path:
        """Write down a note, and what the file held; gives the note's file."""
        folder = self._folder / client
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stem = _free_stem(folder, datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S"))
        if content is not None:
            _write_private(folder / f"{stem}{_suffix(note)}", content)
        file = folder / f"{stem}{_NOTE}"
        _write_private(file, json.dumps(asdict(note)).encode("utf-8", "surrogatepass"))
        _prune(folder)
        return file

    def find(self, client: str, path: Path) -> tuple[Path, InstallNote] | None:
        """The latest note of a client's file, with its own file."""
        return next(self._notes(client, path), None)

    def find_content(self, client: str, path: Path) -> Path | None:
        """Where that is kept which a client's file held before its latest install; nowhere if there was no file."""
        found = self.find(client, path)
        kept = None if found is None else _content_file(*found)
        return kept if kept is not None and kept.exists() else None

    def list_replacing(self, client: str, path: Path) -> Iterator[tuple[InstallNote, bytes]]:
        """The notes of installs that took servers out of a file, the latest first, each with what the file held."""
        for file, note in self._notes(client, path):
            kept = _content_file(file, note)
            with contextlib.suppress(OSError):
                if note.replaced:
                    yield note, kept.read_bytes()

    def _notes(self, client: str, path: Path) -> Iterator[tuple[Path, InstallNote]]:
        wanted = str(path.resolve())
        for file in sorted((self._folder / client).glob(f"*{_NOTE}"), reverse=True):
            note = _read(file)
            if note is not None and note.path == wanted:
                yield file, note

    def urls(self, client: str) -> set[str]:
        """Every address that was written for a client."""
        folder = self._folder / client
        notes = map(_read, (*folder.glob(f"*{_NOTE}"), *folder.glob(f"*{_SPENT}")))
        return {note.url for note in notes if note is not None and note.url}

    def spend(self, client: str, path: Path) -> None:
        """The notes of a file are of no more use: what they tell of is undone. What it held stays kept."""
        while (found := self.find(client, path)) is not None:
            file, _ = found
            file.replace(file.with_name(file.name.removesuffix(_NOTE) + _SPENT))


def _read(file: Path) -> InstallNote | None:
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        data: dict[str, Any] = dict(json.loads(file.read_text("utf-8")))
        folders, replaced = (tuple(map(str, data.pop(key, ()))) for key in ("folders", "replaced"))
        return InstallNote(**data, folders=folders, replaced=replaced)
    return None


def _content_file(file: Path, note: InstallNote) -> Path:
    return file.with_name(file.name.removesuffix(_NOTE) + _suffix(note))


def _suffix(note: InstallNote) -> str:
    return Path(note.path).suffix or ".txt"


def _free_stem(folder: Path, stem: str) -> str:
    taken = {file.name.partition(".")[0] for file in folder.iterdir()}
    number = 0
    # Padded, so that the order of names is the order of time.
    while (candidate := f"{stem}-{number:03}") in taken:
        number += 1
    return candidate


def _write_private(file: Path, content: bytes) -> None:
    # The content may hold secrets, as the file itself may.
    with os.fdopen(os.open(file, NEW_FILE, 0o600), "wb") as handle:
        handle.write(content)


def _prune(folder: Path) -> None:
    """Let go of the oldest that are undone, and of what is kept with them."""
    stems = sorted({file.name.partition(".")[0] for file in folder.iterdir()})
    for stem in stems[:-_MOST_KEPT]:
        if (folder / f"{stem}{_NOTE}").exists():
            continue
        for file in folder.glob(f"{stem}.*"):
            file.unlink(missing_ok=True)
