"""Specs and changes of an OpenSpec folder, to be listed and read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pegboard.names import nearest
from pegboard.result import ToolErrorCode, ToolFailure, invalid
from pegboard.toolsets.tasks.check import not_found, some
from pegboard.toolsets.tasks.folder import ARCHIVE, PROPOSAL, SPEC, TASKS, Folder, Unreadable
from pegboard.toolsets.tasks.markdown import headings, one_ending, plain_lines
from pegboard.toolsets.tasks.requirements import REQUIREMENT
from pegboard.toolsets.tasks.state import State
from pegboard.toolsets.validation import quote

Kind = Literal["spec", "change"]
KINDS: tuple[Kind, ...] = ("spec", "change")
_FOLDERS: dict[Kind, str] = {"spec": "specs", "change": "changes"}


@dataclass(frozen=True, slots=True)
class Shown:
    """A file of a spec or a change, and the others there."""

    kind: Kind
    name: str
    file: str
    text: str
    files: list[tuple[str, int]]


def spec_rows(folder: Folder) -> list[dict[str, Any]]:
    """Every spec, by name."""
    rows: list[dict[str, Any]] = []
    for name in folder.names("specs"):
        try:
            text = folder.text(folder.root / "specs" / name / SPEC)
        except Unreadable as exc:
            rows.append({"name": name, "problem": str(exc)})
            continue
        if text is not None:
            rows.append({"name": name, **_about(text)})
    return rows


def change_rows(folder: Folder, state: State) -> list[dict[str, Any]]:
    """Every change that is not archived, by id."""
    rows: list[dict[str, Any]] = []
    for name, change in state.folders.items():
        row: dict[str, Any] = {"id": name, "title": change.title}
        tasks = state.changes.get(name)
        if tasks is not None:
            row |= {"status": tasks.status, "tasks": len(tasks.tasks), "completed": tasks.counts["completed"]}
        deltas = change.path / "specs"
        row["specs"] = folder.names(deltas.relative_to(folder.root).as_posix())
        rows.append(row)
    return rows


def show(folder: Folder, name: str, kind: Kind | None = None, file: str | None = None) -> Shown:
    """A file of a spec or a change: the one that was asked for, else what says the most."""
    found = _place(folder, name, kind)
    path = folder.root / _FOLDERS[found] / name
    files = folder.files(path)
    chosen = _choose_file(found, [each for each, _ in files], file, name)
    try:
        text = folder.text(path / chosen)
    except Unreadable as exc:
        raise ToolFailure(ToolErrorCode.EXECUTION_FAILED, f"{name}: {exc}", retryable=False) from None
    if text is None:
        raise not_found(f"{name} has no file {chosen} any more")
    return Shown(found, name, chosen, text, files)


def _place(folder: Folder, name: str, kind: Kind | None) -> Kind:
    """Whether it is a spec or a change that is meant."""
    found: list[Kind] = [each for each in KINDS if kind in {None, each} and name in _names(folder, each)]
    if len(found) > 1:
        raise invalid(f"there are a spec and a change named {quote(name)}: say which with kind")
    if not found:
        known = [each for wanted in KINDS if kind in {None, wanted} for each in _names(folder, wanted)]
        close = nearest(name[:100], known)
        hint = f": did you mean {', '.join(close)}?" if close else "; spec_list shows those there are"
        raise not_found(f"there is no {kind or 'spec or change'} {quote(name)}{hint}")
    return found[0]


def _names(folder: Folder, kind: Kind) -> list[str]:
    return [name for name in folder.names(_FOLDERS[kind]) if (kind, name) != ("change", ARCHIVE)]


def _choose_file(kind: Kind, files: list[str], file: str | None, name: str) -> str:
    if file is not None:
        # Only what is listed can be read: no path leads out of it.
        if Path(file).as_posix() in files:
            return Path(file).as_posix()
        raise not_found(f"{name} has no file {quote(file)}; it has {some(files) or 'none'}")
    usual = [SPEC] if kind == "spec" else [PROPOSAL, TASKS]
    for each in (*usual, *files):
        if each in files:
            return each
    raise not_found(f"{name} has no Markdown file")


def _about(text: str) -> dict[str, Any]:
    found = headings(plain_lines(one_ending(text)).plain)
    title = next((heading.title for heading in found if heading.level == 1), None)
    count = sum(heading.level == 3 and REQUIREMENT.match(heading.title) is not None for heading in found)
    row: dict[str, Any] = {"requirements": count}
    return {"title": title[:200], **row} if title else row
