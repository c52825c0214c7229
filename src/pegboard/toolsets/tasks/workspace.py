"""A workspace: which OpenSpec folder a call is about, and whether its caller may go there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pegboard.result import invalid
from pegboard.toolsets.tasks.check import checked_text, not_found, shown

# The folders that the client works in; `None` for a client that names none.
Roots = Callable[[], Awaitable[Sequence[Path] | None]]
NAME = "openspec"
_MAX_PATH = 4096


async def no_roots() -> Sequence[Path] | None:
    """The roots of a caller that has none to name: from Python, REST, or the command line."""
    return None


class Workspace:
    """Finds the folder. A client that names its roots stays within them; links that lead out of them do not help it."""

    def __init__(
        self,
        roots: Roots = no_roots,
        *,
        configured: Callable[[], str | None] = lambda: None,
        here: Callable[[], Path] = Path.cwd,
    ) -> None:
        self._roots = roots
        self._configured = configured
        self._here = here

    async def folder(self, path: str | None = None) -> Path:
        """The OpenSpec folder of a path, or of the workspace where none is given."""
        named = await self._roots()
        roots = None if named is None else [_resolved(root) for root in named]
        if path is not None and path.strip():
            return _allowed(_openspec(self._meant(path, roots)), roots)
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
            " tasks.workspace in the config"
        )


def folder_of(uri: str) -> Path | None:
    """The folder that a `file:` address means; `None` for any other text."""
    if not uri.lower().startswith("file:"):
        return None
    parts = urlsplit(uri)
    if parts.netloc not in {"", "localhost"}:
        raise invalid(f"{shown(uri)} is on another machine")
    return Path(url2pathname(parts.path))


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
