"""A project: which OpenSpec folder a call is about, and whether its caller may go there."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pegboard.result import ToolFailure, invalid
from pegboard.toolsets.checked import checked_text, shown
from pegboard.toolsets.tasks.check import not_found

# The folders that the client names, as paths or `file:` addresses; `None` for a client that names none. It may fail.
Named = Callable[[], Awaitable[Sequence[str] | None]]
NAME = "openspec"
_MAX_PATH = 4096
# A letter by itself is a drive.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


async def nothing_named() -> Sequence[str] | None:
    """What a caller names that has no folders to name: from Python, REST, or the command line."""
    return None


class Project:
    """Finds the folder. A client that names folders stays within them; links that lead out of them do not help it."""

    def __init__(
        self,
        named: Named = nothing_named,
        *,
        configured: Callable[[], str | None] = lambda: None,
        here: Callable[[], Path] = Path.cwd,
    ) -> None:
        self._named = named
        self._configured = configured
        self._here = here

    async def folder(self, path: str | None = None) -> Path:
        """The OpenSpec folder of a path, or of the workspace where none is given."""
        if path is not None and path.strip():
            roots = _roots(await self._named())
            return _allowed(_openspec(self._meant(path, roots)), roots)
        try:
            roots = _roots(await self._named())
        except ToolFailure:
            # Nobody knows the client's bounds, but what is configured here is in nobody's way.
            roots = None
        if roots is not None:
            return _first(roots)
        if configured := self._configured():
            return _openspec(_resolved(_home(Path(configured))))
        return self._around()

    def _meant(self, path: str, roots: Sequence[Path] | None) -> Path:
        checked_text(path, "path", _MAX_PATH)
        base = roots[0] if roots else _home(Path(self._configured() or self._here()))
        meant = _resolved(base / (folder_of(path) or _home(Path(path))))
        if roots is not None and not any(meant.is_relative_to(root) for root in roots):
            raise invalid(f"path {shown(path)} is outside of the folders that your client named: {_listed(roots)}")
        return meant

    def _around(self) -> Path:
        here = _resolved(self._here())
        if (here / NAME).is_dir():
            return _resolved(here / NAME)
        raise not_found(
            f"which folder? Your client names none, and there is no {NAME} folder in {here}: give path, or set"
            " workspace in the config"
        )


def folder_of(uri: str) -> Path | None:
    """The folder that a `file:` address means; `None` for any other text."""
    if not uri.lower().startswith("file:"):
        return None
    parts = urlsplit(uri)
    if parts.netloc not in {"", "localhost"}:
        raise invalid(f"{shown(uri)} is on another machine")
    return Path(url2pathname(parts.path))


def _roots(named: Sequence[str] | None) -> list[Path] | None:
    """The folders on this machine among those that a client names."""
    if named is None:
        return None
    return [_resolved(folder) for each in named if (folder := _local(each)) is not None]


def _local(named: str) -> Path | None:
    if _ADDRESS.match(named) is None:
        return _home(Path(named))
    try:
        return folder_of(named)
    except ToolFailure:
        return None


def _first(roots: Sequence[Path]) -> Path:
    if not roots:
        raise not_found("your client has no folder open: open one, or give path")
    for root in roots:
        if (root / NAME).is_dir() or root.name == NAME:
            return _allowed(_openspec(root), roots)
    raise not_found(f"there is no {NAME} folder in {_listed(roots)}: `openspec init` makes one")


def _openspec(path: Path) -> Path:
    for folder in (path / NAME, path):
        if folder.name == NAME and folder.is_dir():
            return _resolved(folder)
    what = "there is no such folder" if not path.is_dir() else f"there is no {NAME} folder in it"
    raise not_found(f"{path}: {what}; `openspec init` makes one")


def _allowed(folder: Path, roots: Sequence[Path] | None) -> Path:
    if roots is not None and not any(folder.is_relative_to(root) for root in roots):
        raise invalid(f"{folder} is outside of the folders that your client named: {_listed(roots)}")
    return folder


def _home(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as exc:
        raise invalid(f"path {shown(str(path))} cannot be followed: {exc}") from None


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as exc:
        raise invalid(f"path {shown(str(path))} cannot be followed: {exc}") from None


def _listed(roots: Sequence[Path]) -> str:
    return ", ".join(map(str, roots)) or "none"
