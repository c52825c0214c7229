"""Which keys seal the secrets of a storage: those of the environment, else one of this machine's own.

A key that was in use before stays readable: whoever moves from a file to the environment keeps every sign-in.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from pathlib import Path

from pegboard.log import logger
from pegboard.sealing.errors import SealingError
from pegboard.sealing.key_file import KeyFile
from pegboard.sealing.key_source import KeySource
from pegboard.sealing.secret_key import SecretKey, parse_keys

VARIABLE = "PEGBOARD_SECRET_KEY"
FILE_VARIABLE = "PEGBOARD_SECRET_KEY_FILE"
_MAX_BYTES = 64 * 1024
_ADVICE = "`pegboard secrets key` prints a new one"


class KeyChain:
    """The keys of several sources. Those of the first must be there; others only open what they sealed before."""

    def __init__(self, first: KeySource, others: tuple[KeySource, ...] = ()) -> None:
        self.first = first
        self.others = others

    @property
    def place(self) -> str:
        """Where the key is that seals."""
        return self.first.place

    @property
    def is_there(self) -> bool:
        """Whether the first has a key already."""
        return self.first.is_there

    @property
    def is_quick(self) -> bool:
        """Whether all of them can be read in no time."""
        return all(source.is_quick for source in (self.first, *self.others))

    def stamp(self) -> Hashable:
        """That of all."""
        return tuple(source.stamp() for source in (self.first, *self.others))

    def load(self) -> tuple[SecretKey, ...]:
        """The keys of all that can be read."""
        keys = list(self.first.load())
        for source in self.others:
            try:
                keys += source.load()
            except SealingError as exc:
                logger().warning("secrets.key.unreadable", place=source.place, reason=exc.problem)
        return tuple(dict.fromkeys(keys))


class EnvironmentKeys:
    """The keys of a variable. They never change while we run."""

    is_quick = True
    is_there = True
    place = VARIABLE

    def __init__(self, text: str) -> None:
        self._text = text

    def stamp(self) -> Hashable:
        """Always the same."""
        return None

    def load(self) -> tuple[SecretKey, ...]:
        """The keys; an error names the variable and never its value."""
        try:
            return parse_keys(self._text)
        except ValueError as exc:
            raise SealingError(f"{VARIABLE} cannot be used: {exc}", _ADVICE) from None


class GivenKeyFile:
    """The keys of a file that the environment names and others look after, such as a mounted secret."""

    is_quick = True
    is_there = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self.place = f"{path} ({FILE_VARIABLE})"

    def stamp(self) -> Hashable:
        """What the file system says of the file."""
        return read_stamp(self._path)

    def load(self) -> tuple[SecretKey, ...]:
        """The keys as the file has them now."""
        try:
            with self._path.open("rb") as file:
                text = file.read(_MAX_BYTES).decode()
            return parse_keys(text)
        except OSError as exc:
            reason = exc.strerror or type(exc).__name__
            answer = f"the file of {FILE_VARIABLE} cannot be read"
            raise SealingError(f"{self.place} cannot be read: {reason}", _ADVICE, answer=answer) from None
        except ValueError as exc:
            reason = "it is not text" if isinstance(exc, UnicodeDecodeError) else str(exc)
            answer = f"the file of {FILE_VARIABLE} cannot be used"
            raise SealingError(f"{self.place} cannot be used: {reason}", _ADVICE, answer=answer) from None


def read_stamp(path: Path) -> Hashable:
    """Another value when a file changed; `None` while there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def find_source(storage_setting: str, environment: Mapping[str, str], state_folder: Path) -> KeyChain:
    """Where the keys for a storage come from; nothing is read or made yet."""
    given = _list_given(environment)
    own = _own_file(storage_setting, state_folder)
    if own is not None and (not given or os.path.lexists(own)):
        given.append(KeyFile(own))
    if not given:
        raise SealingError(
            "secrets on PostgreSQL are sealed with a key that all its gateways share, and there is none",
            f"set {VARIABLE} to the same key for each of them; {_ADVICE}",
        )
    return KeyChain(given[0], tuple(given[1:]))


def find_key_problem(environment: Mapping[str, str]) -> str | None:
    """Why a key that the environment gives cannot be used, before anybody needs it; it names no key."""
    for source in _list_given(environment):
        try:
            source.load()
        except SealingError as exc:
            return str(exc)
    return None


def _list_given(environment: Mapping[str, str]) -> list[KeySource]:
    """The sources that the environment names."""
    given: list[KeySource] = []
    if text := environment.get(VARIABLE, "").strip():
        given.append(EnvironmentKeys(text))
    if path := environment.get(FILE_VARIABLE, "").strip():
        given.append(GivenKeyFile(Path(path).expanduser()))
    return given


def _own_file(storage_setting: str, state_folder: Path) -> Path | None:
    """The file for the key beside a database of this machine."""
    if storage_setting == "sqlite":
        return state_folder / "secret.key"
    if storage_setting.startswith("sqlite:"):
        database = storage_setting.removeprefix("sqlite:").removeprefix("//")
        return Path(database).expanduser().parent / "secret.key"
    return None
