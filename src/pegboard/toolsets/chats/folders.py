"""Folders that a chat belongs to: how they are written, and whether one lies in another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Protocol
from urllib.parse import unquote, urlsplit

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
_NO_LETTER = re.compile(r"[^a-zA-Z0-9]")
# Where such a name would be longer than this, it is cut and ends in a digest.
_LONG = 200
_DRIVE = re.compile(r"/?([a-zA-Z]):(?=/|$)")


def path_of(place: str) -> str:
    """The path of a folder that is given as a URI or as a path; of one on another machine, the path there."""
    if _SCHEME.match(place):
        try:
            parts = urlsplit(place)
        except ValueError:
            return place
        path = unquote(parts.path)
        if parts.scheme.lower() == "file" and parts.netloc not in {"", "localhost"}:
            path = f"//{parts.netloc}{path}"
        drive = _DRIVE.match(path)
        return f"{drive.group(1).upper()}:{path[drive.end() :] or '/'}" if drive else path
    return place


@lru_cache(maxsize=4096)
def same_form(place: str) -> str:
    """A folder in the one form in which it can be compared; Windows does not tell upper from lower case."""
    path = path_of(place).replace("\\", "/")
    drive = _DRIVE.match(path)
    if drive:
        path = f"{drive.group(1)}:{path[drive.end() :]}".casefold()
    return path.rstrip("/") or "/"


def lies_in(folder: str, around: str) -> bool:
    """Whether a folder is another one, or lies somewhere in it; both in the form for comparing."""
    return folder == around or folder.startswith(around if around.endswith("/") else f"{around}/")


def belongs(folders: Iterable[str], places: Sequence[str]) -> bool:
    """Whether one of these folders is one of these places, or lies in one."""
    return any(lies_in(same_form(folder), place) for folder in folders for place in map(same_form, places))


def holds(folders: Iterable[str], places: Sequence[str]) -> bool:
    """Whether one of these places lies in one of these folders."""
    return any(lies_in(place, same_form(folder)) for folder in folders for place in map(same_form, places))


class Where(Protocol):
    """Which chats are meant, by their folders."""

    def admits(self, folders: Sequence[str]) -> bool:
        """Whether a chat of these folders is."""
        ...

    def may_admit(self, flat: str) -> bool:
        """Whether one may be whose folder is only known flattened."""
        ...


class Anywhere:
    """All of them."""

    def admits(self, folders: Sequence[str]) -> bool:
        """Yes."""
        del folders
        return True

    def may_admit(self, flat: str) -> bool:
        """Yes."""
        del flat
        return True


class Within:
    """Those of some places, or of folders in them."""

    def __init__(self, places: Sequence[str]) -> None:
        self._places = places
        self._flat = [flatten(same_form(place)) for place in places]

    def admits(self, folders: Sequence[str]) -> bool:
        """Whether one of these folders is a place, or lies in one."""
        return belongs(folders, self._places)

    def may_admit(self, flat: str) -> bool:
        """A path that begins with another one does so flattened, too."""
        return len(flat) >= _LONG or any(flat.startswith(place) for place in self._flat)


class Around:
    """Those whose folder is around one of some places."""

    def __init__(self, places: Sequence[str]) -> None:
        self._places = places
        self._flat = [flatten(same_form(place)) for place in places]

    def admits(self, folders: Sequence[str]) -> bool:
        """Whether a place lies in one of these folders."""
        return holds(folders, self._places)

    def may_admit(self, flat: str) -> bool:
        """A path that begins with another one does so flattened, too."""
        return len(flat) >= _LONG or any(place.startswith(flat) for place in self._flat)


def flatten(path: str) -> str:
    """A path with a dash for whatever is no letter and no digit, as some programs name a folder after another one."""
    # They count in UTF-16.
    return _NO_LETTER.sub(lambda found: "--" if found.group() > "\uffff" else "-", path).casefold()
