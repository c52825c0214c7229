"""A change of one file: read whole, shown as a diff, and put in place in one step, if nobody changed it meanwhile."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pegboard.client_configs.document import ClientFileError
from pegboard.config.file import read_file
from pegboard.config.lock import alone_with

# Some clients keep much more in their file than servers.
MAX_BYTES = 32 * 2**20
# A file that is not there yet, whose bytes are written as they are on Windows, too.
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a file holds and what it will hold; `None` is no file."""

    # The file itself, and no link to it: what was shown is what is changed.
    path: Path
    before: bytes | None
    after: bytes | None

    def apply(self, prepare: Callable[[], None] = lambda: None) -> None:
        """Put it in place, after `prepare`; `ClientFileError` if it cannot be, or if the file has changed meanwhile."""
        try:
            with alone_with(self.path):
                self._check()
                prepare()
                self._write()
        except (OSError, RuntimeError) as exc:
            reason = getattr(exc, "strerror", None) or exc
            raise ClientFileError(f"{self.path}: it cannot be written: {reason}; nothing was changed") from None

    def _check(self) -> None:
        if read_whole(self.path) != self.before:
            reason = "somebody else changed it after it was looked at"
            raise ClientFileError(f"{self.path}: {reason}; nothing was written, try again")
        if self.before is not None and not self.path.stat().st_mode & stat.S_IWUSR:
            # Replacing it would work all the same, and is not what its owner wants.
            raise ClientFileError(f"{self.path}: it is read-only; nothing was written")

    def _write(self) -> None:
        if self.after is None:
            self.path.unlink()
        else:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _replace(self.path, self.after)


def read_whole(path: Path) -> bytes | None:
    """All of a file, or `None` if there is none; `ClientFileError` if it cannot be read."""
    try:
        return read_file(path, is_found=True, most=MAX_BYTES)
    except FileNotFoundError:
        if path.is_symlink():
            raise ClientFileError(f"{path}: it is a link to a file that does not exist") from None
        return None
    except OSError as exc:
        raise ClientFileError(f"{path}: {exc.strerror or exc}") from None


def follow_links(path: Path, inside: Path | None = None) -> Path:
    """The file itself, for a path that may be a link: a link stays one, and what it leads to is changed.

    `ClientFileError` if it leads out of the folder that it has to stay inside of.
    """
    try:
        file = path.resolve()
    except (OSError, RuntimeError) as exc:
        raise ClientFileError(f"{path}: {getattr(exc, 'strerror', None) or exc}") from None
    if inside is not None and not file.is_relative_to(inside.resolve()):
        raise ClientFileError(
            f"{path}: a link leads from there to {file}, which is not in the project: nothing was changed"
        )
    return file


def decode(path: Path, content: bytes | None) -> str:
    """The text of a file as it is, with BOM and line ends; of no file it is empty."""
    try:
        return (content or b"").decode("utf-8")
    except UnicodeDecodeError as exc:
        line = content.count(b"\n", 0, exc.start) + 1 if content else 1
        raise ClientFileError(f"{path}:{line}: it is not UTF-8") from None


def digest(content: bytes | None) -> str:
    """A short name for the content of a file; empty for no file."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


def missing_folders(path: Path) -> list[Path]:
    """The folders that have to be made for a file, the innermost first."""
    return [folder for folder in path.parents if not folder.exists()]


def _replace(target: Path, content: bytes) -> None:
    # Clients that read every file of a folder go by the ending.
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.draft")
    try:
        # A new file is as readable as the user's other ones.
        with os.fdopen(os.open(draft, NEW_FILE, 0o666), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _keep_owner_and_mode(target, draft)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _keep_owner_and_mode(target: Path, draft: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        status = target.stat()
        if hasattr(os, "chown"):
            with contextlib.suppress(OSError):
                os.chown(draft, status.st_uid, status.st_gid)
        draft.chmod(stat.S_IMODE(status.st_mode))
