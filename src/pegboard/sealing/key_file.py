"""The key of this machine: `secret.key` beside the database. It has the key, or says which entry of the keyring does.

Of several processes that need a key at once, one makes it and all others find that one.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Collection, Hashable, Sequence
from contextlib import suppress
from pathlib import Path

from pegboard import system_keyring
from pegboard.config.lock import alone_with
from pegboard.log import logger
from pegboard.sealing.errors import SealingError
from pegboard.sealing.secret_key import SecretKey, parse_keys

_IN_KEYRING = "keyring:"
_MAX_BYTES = 64 * 1024
# Seconds for another process to write what it has begun.
_PATIENCE = 2.0
_ANSWER = "the key that seals secrets cannot be used"


class KeyFile:
    """Makes a key where there is none: in the keyring, if there is one that works, else in the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Until it was read, it may be in the keyring.
        self._is_in_keyring = True

    @property
    def is_there(self) -> bool:
        """Whether the file is there."""
        return os.path.lexists(self.path)

    @property
    def is_quick(self) -> bool:
        """Whether the file itself has the key."""
        return not self._is_in_keyring

    @property
    def place(self) -> str:
        """The file, or the keyring that it names."""
        with suppress(OSError, ValueError, SealingError):
            if self._read().startswith(_IN_KEYRING):
                return f"the keyring of this user ({self.path} names its entry)"
        return str(self.path)

    def stamp(self) -> Hashable:
        """What the file system says of the file."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def load(self) -> tuple[SecretKey, ...]:
        """The keys; one is made if there is none."""
        try:
            if not self.is_there:
                self._make()
            _narrow(self.path)
            return self._parse(self._read())
        except OSError as exc:
            reason = exc.strerror or type(exc).__name__
            raise SealingError(
                f"{self.path} cannot be used: {reason}", "check its rights and those of its folder", answer=_ANSWER
            ) from None
        except ValueError as exc:
            reason = "it is not text" if isinstance(exc, UnicodeDecodeError) else str(exc)
            raise SealingError(
                f"{self.path} cannot be used: {reason}",
                "put a backup in its place, or move it away and sign in to all servers again",
                answer=_ANSWER,
            ) from None

    def rotate(self, keep: Collection[bytes]) -> SecretKey:
        """Make another key, which seals from now on. The one before, and those whose ids are to be kept, stay."""
        with alone_with(self.path):
            keys = self.load()
            key = SecretKey.make()
            rest = [old for number, old in enumerate(keys) if number == 0 or old.id in keep]
            before = self._read()
            text = _write_keys([key, *rest])
            entry = system_keyring.add(text) if before.startswith(_IN_KEYRING) else None
            if before.startswith(_IN_KEYRING) and entry is None:
                raise _keyring_away(self.path)
            _replace(self.path, text if entry is None else f"{_IN_KEYRING}{entry}\n")
            if entry is not None:
                system_keyring.delete(before.removeprefix(_IN_KEYRING).strip())
        return key

    def _make(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = SecretKey.make()
        entry = system_keyring.add(_write_keys([key]))
        text = _write_keys([key]) if entry is None else f"{_IN_KEYRING}{entry}\n"
        if _create(self.path, text):
            logger().info("secrets.key.made", place=self.place)
        elif entry is not None:
            # Somebody else was first, and theirs counts.
            system_keyring.delete(entry)

    def _read(self) -> str:
        deadline = time.monotonic() + _PATIENCE
        while True:
            with self.path.open("rb") as file:
                text = file.read(_MAX_BYTES).decode()
            if text.strip() or time.monotonic() > deadline:
                return text
            time.sleep(0.01)

    def _parse(self, text: str) -> tuple[SecretKey, ...]:
        self._is_in_keyring = text.startswith(_IN_KEYRING)
        if not self._is_in_keyring:
            return parse_keys(text)
        found = system_keyring.find(text.removeprefix(_IN_KEYRING).strip())
        if found is None:
            raise _keyring_away(self.path)
        return parse_keys(found)


def _keyring_away(path: Path) -> SealingError:
    return SealingError(
        f"the key that seals secrets is in the keyring of this user, as {path} says, and cannot be read there",
        "unlock the keyring, or start Pegboard in the desktop's session; if the key is gone, move that file away and"
        " sign in to all servers again",
        answer="the key that seals secrets is in a keyring that cannot be read",
    )


def _write_keys(keys: Sequence[SecretKey]) -> str:
    return "".join(f"{key.text}\n" for key in keys)


def _create(path: Path, text: str) -> bool:
    """Make a file whole or not at all; false if there is one."""
    draft = _write_draft(path, text)
    try:
        os.link(draft, path)
        return True
    except FileExistsError:
        return False
    except OSError:
        # A file system without hard links; whoever comes between waits for the text.
        return _create_exclusively(path, text)
    finally:
        draft.unlink(missing_ok=True)


def _create_exclusively(path: Path, text: str) -> bool:
    try:
        _write(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), text)
    except FileExistsError:
        return False
    return True


def _replace(path: Path, text: str) -> None:
    draft = _write_draft(path, text)
    try:
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _write_draft(path: Path, text: str) -> Path:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    _write(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), text)
    return draft


def _write(descriptor: int, text: str) -> None:
    # Without the key, everything that it sealed is lost: it must outlive a crash of the machine.
    with os.fdopen(descriptor, "w", encoding="ascii") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())


def _narrow(path: Path) -> None:
    """The key is its user's alone: somebody else's file is refused, whatever its mode, and wider modes are taken
    back."""
    if os.name == "nt":
        return
    status = path.stat()
    mode = f"{stat.S_IMODE(status.st_mode):04o}"
    if status.st_uid != os.geteuid():
        # They know the key, or can put another one there. That holds for root, too, who could read it anyway.
        raise SealingError(
            f"{path} belongs to another user (uid {status.st_uid}, mode {mode}), and Pegboard runs as uid"
            f" {os.geteuid()}",
            f"run Pegboard as the user that the file belongs to, or, if the key is yours: chown {os.geteuid()} {path}",
            answer=_ANSWER,
        )
    if not status.st_mode & 0o077:
        return
    path.chmod(0o600)
    logger().warning("secrets.key.readable", place=str(path), mode=mode, now="0600")
