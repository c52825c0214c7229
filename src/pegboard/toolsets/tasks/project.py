"""A project: which OpenSpec folder a call is about, and whether its caller may go there."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pegboard.folder_names import leads_elsewhere
from pegboard.result import ToolFailure, invalid
from pegboard.toolsets.tasks.check import not_found
from pegboard.toolsets.validation import quote, validate_text

# The folders that the client names, as paths or `file:` addresses; `None` for a client that names none. It may fail.
Named = Callable[[], Awaitable[Sequence[str] | None]]
NAME = "openspec"
_MAX_PATH = 4096
# A letter by itself is a drive.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


async def nothing_named() -> Sequence[str] | None:
    """What a caller names that has no folders to name: from Python, REST, or the command line."""
    return None


class _Bounds(NamedTuple):
    """Folders that a caller stays within: those that it named, or the one that is open to other machines."""

    folders: Sequence[Path]
    named: bool

    @property
    def words(self) -> str:
        """What they are called: its own by their names, ours without."""
        if not self.named:
            return "the workspace that is open to clients on other machines"
        return f"the folders that your client named: {', '.join(map(str, self.folders)) or 'none'}"

    def check(self, folder: Path, given: str) -> Path:
        """A folder within them."""
        if not any(folder.is_relative_to(bound) for bound in self.folders):
            raise invalid(f"path {quote(given)} is outside of {self.words}")
        return folder


class Project:
    """Finds the folder. A client that names folders stays within them; links that lead out of them do not help it.

    One on another machine stays within the workspace of this one, whatever it names. What cannot be found is told by
    the name that the caller gave it: where links and `~` lead, and what else is on the disk, is nothing to tell.
    """

    def __init__(
        self,
        named: Named = nothing_named,
        *,
        configured: Callable[[], str | None] = lambda: None,
        here: Callable[[], Path] = Path.cwd,
        is_elsewhere: Callable[[], bool] = lambda: False,
    ) -> None:
        self._named = named
        self._configured = configured
        self._here = here
        self._is_elsewhere = is_elsewhere

    async def folder(self, path: str | None = None) -> Path:
        """The OpenSpec folder of a path, or of the workspace where none is given."""
        if path is not None and path.strip():
            return self._folder_at(path, self._bounds(await self._named()))
        try:
            named = await self._named()
        except ToolFailure:
            # Nobody knows the client's bounds, but what is configured here is in nobody's way.
            named = None
        bounds = self._bounds(named)
        # Whoever has other projects open does not mean ours, unless they say so.
        return self._own() if named is None or bounds is None else _first(bounds)

    def display(self, folder: Path) -> str:
        """A folder as its caller may know it: who is on another machine does not learn where the workspace is."""
        if not self._is_elsewhere():
            return str(folder)
        base = self._base()
        return folder.relative_to(base).as_posix() if folder.is_relative_to(base) else folder.name

    def _bounds(self, named: Sequence[str] | None) -> _Bounds | None:
        """What the caller stays within, if anything."""
        roots = [_resolve(folder) for each in named or () if (folder := _local(each)) is not None]
        if not self._is_elsewhere():
            return None if named is None else _Bounds(roots, named=True)
        # The same name means another folder there, unless it is one that is open to them here.
        base = self._base()
        inside = [root for root in roots if root.is_relative_to(base)]
        return _Bounds(inside or [base], named=bool(inside))

    def _base(self) -> Path:
        """The workspace of this machine."""
        return _resolve(_home(Path(self._configured() or self._here())))

    def _folder_at(self, path: str, bounds: _Bounds | None) -> Path:
        validate_text(path, "path", _MAX_PATH)
        base = bounds.folders[0] if bounds is not None and bounds.folders else self._base()
        named = folder_of(path)
        if leads_elsewhere(path if named is None else str(named)):
            raise invalid(f"path {quote(path)}: it must be a folder of this machine")
        meant = _resolve(base / (named or _home(Path(path))), path)
        if bounds is not None:
            bounds.check(meant, path)
        found = _openspec(meant)
        if found is None:
            raise not_found(f"path {quote(path)}: there is no {NAME} folder there; `openspec init` makes one")
        return found if bounds is None else bounds.check(found, path)

    def _own(self) -> Path:
        found = _openspec(self._base())
        if found is not None:
            return found
        if self._configured():
            raise not_found(f"there is no {NAME} folder in the workspace of the config; `openspec init` makes one")
        raise not_found(
            f"which folder? Your client names none, and there is no {NAME} folder where Pegboard was started: give"
            " path, or set workspace in the config"
        )


def folder_of(uri: str) -> Path | None:
    """The folder that a `file:` address means; `None` for any other text."""
    if not uri.lower().startswith("file:"):
        return None
    try:
        parts = urlsplit(uri)
    except ValueError as exc:
        raise invalid(f"{quote(uri)} is no address: {exc}") from None
    if parts.netloc not in {"", "localhost"}:
        raise invalid(f"{quote(uri)} is on another machine")
    return Path(url2pathname(parts.path))


def _local(named: str) -> Path | None:
    """The folder on this machine that a client names."""
    if _ADDRESS.match(named) is None:
        return _home(Path(named))
    try:
        return folder_of(named)
    except ToolFailure:
        return None


def _first(roots: _Bounds) -> Path:
    if not roots.folders or not roots.named:
        raise not_found("your client has no folder open that is one of this machine: open one, or give path")
    for root in roots.folders:
        if (found := _openspec(root)) is not None:
            return roots.check(found, str(root))
    raise not_found(f"there is no {NAME} folder in {roots.words}; `openspec init` makes one")


def _openspec(path: Path) -> Path | None:
    for folder in (path / NAME, path):
        if folder.name == NAME and _is_folder(folder):
            return _resolve(folder)
    return None


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        # Of a name that is too long, or a folder that we may not look into, Python makes an exception.
        return False


def _home(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as exc:
        raise invalid(f"path {quote(str(path))} cannot be followed: {exc}") from None


def _resolve(path: Path, given: str = "") -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as exc:
        why = (exc.strerror if isinstance(exc, OSError) else None) or exc
        raise invalid(f"path {quote(given or str(path))} cannot be followed: {why}") from None
