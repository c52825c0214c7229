"""Changes one server's entry in the config file; everything else in it stays byte for byte.

A file that needs trust is changed only while it says what was trusted: our own change stays trusted, and must not make
what came from outside trusted too.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pegboard.config import jsonc
from pegboard.config.aliases import place_of, with_own_keys, with_own_tools
from pegboard.config.backup import keep_backup
from pegboard.config.file import read_file
from pegboard.config.foreign_shape import SECTIONS, foreign_shape
from pegboard.config.literal_secrets import has_secret
from pegboard.config.locate import trust_store
from pegboard.config.lock import alone_with
from pegboard.config.read import check_trust, decode, parse_settings
from pegboard.config.settings import (
    ConfigError,
    ConfigWriteError,
    EntryChangedError,
    ServerExistsError,
    UnknownServerError,
)
from pegboard.exactjson import as_object
from pegboard.names import fold_server_name, nearest


def add_server(
    path: Path, name: str, entry: Mapping[str, object], *, force: bool = False, needs_trust: bool = False
) -> bool:
    """Write a new entry, and say whether it is one: the same entry again changes nothing, another one under a name that
    is taken is an error, unless it is forced."""
    is_new = True

    def change(text: str) -> str:
        nonlocal is_new
        found = _find(text, name)
        if found is None:
            return _check_added(_set_new(text, name, entry), path, [name])
        is_new = False
        if is_same_entry(as_object(_root(text)[found[0]][found[1]]) or {}, entry):
            return text
        if not force:
            raise ServerExistsError(f'{path}: there is a server "{name}" already')
        return _check_added(jsonc.set_value(text, found, dict(entry)), path, [name])

    _rewrite(path, change, needs_trust=needs_trust, is_private=has_secret(entry))
    return is_new


def add_servers(
    path: Path, entries: Mapping[str, Mapping[str, object]], *, needs_trust: bool = False, is_new_file: bool = False
) -> Path | None:
    """Write several new entries in one step; gives the backup of what the file said before, if it said anything.

    A file in another program's shape is written anew.
    """

    def change(text: str) -> str:
        return _check_added(_set_all_new("" if is_new_file else text, path, entries), path, entries)

    secret = any(map(has_secret, entries.values()))
    return _rewrite(path, change, needs_trust=needs_trust, is_private=secret, is_new_file=is_new_file, with_backup=True)


def change_server(
    path: Path, name: str, changes: Mapping[str, object], *, digest: str | None = None, needs_trust: bool = False
) -> str:
    """Change an entry as JSON Merge Patch (RFC 7396) says: what is left out stays, `None` takes out. With the digest of
    the entry that the change was made for, another one is left as it is. Gives the digest of what is there now."""
    after = ""

    def change(text: str) -> str:
        nonlocal after
        section, given = _entry(path, text, name)
        current = as_object(_root(text)[section][given]) or {}
        if digest is not None and digest != entry_digest(current):
            raise EntryChangedError(f'the entry of "{name}" has changed since you read it; nothing was written')
        placed = {place_of(key, current): value for key, value in changes.items()}
        if as_object(placed.get("tools")) is not None and (own := with_own_tools(current)) != current:
            # What a plain list lets through would be lost with it.
            text, current = jsonc.set_value(text, (section, given, "tools"), own["tools"]), own
        text = _check_added(_merge_patch(text, (section, given), current, placed), path, [name])
        after = entry_digest(as_object(_root(text)[section][given]) or {})
        return text

    _rewrite(path, change, needs_trust=needs_trust, is_private=has_secret(changes))
    return after


def entry_digest(entry: Mapping[str, Any]) -> str:
    """A short name for what an entry says, however it is written."""
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()


def _merge_patch(text: str, place: tuple[str, ...], current: Mapping[str, Any], changes: Mapping[str, object]) -> str:
    for key, value in changes.items():
        inner, known = as_object(value), as_object(current.get(key))
        if value is None:
            text = jsonc.remove(text, (*place, key)) if key in current else text
        elif inner is not None and known is not None:
            text = _merge_patch(text, (*place, key), known, inner)
        else:
            text = jsonc.set_value(text, (*place, key), value if inner is None else _without_nulls(inner))
    return text


def _without_nulls(value: Mapping[str, Any]) -> dict[str, Any]:
    """What a patch makes of nothing."""
    return {
        key: each if (inner := as_object(each)) is None else _without_nulls(inner)
        for key, each in value.items()
        if each is not None
    }


def find_entry(path: Path, name: str) -> dict[str, Any] | None:
    """The entry of a server as it stands in the file, if it is there and can be read."""
    try:
        text = decode(_read(path), path)
        found = _find(text, name)
        return None if found is None else as_object(_root(text)[found[0]][found[1]])
    except (ConfigError, jsonc.JsoncError, AttributeError):
        return None


def entries_of(path: Path) -> dict[str, dict[str, Any]]:
    """Every entry of a config file as it stands there; raises `ConfigError` if the file cannot be used."""
    text = decode(_read(path), path)
    if not text.strip():
        return {}
    parse_settings(text, path, os.environ)
    root = _root(text)
    sections = [as_object(root.get(section)) or {} for section in SECTIONS]
    return {name: as_object(entry) or {} for section in sections for name, entry in section.items()}


def has_foreign_shape(path: Path) -> bool:
    """Whether a file is no config of ours, but one of another program, be it in TOML or YAML."""
    try:
        root = as_object(_root(decode(_read(path), path)))
    except jsonc.JsoncError:
        return True
    return root is not None and foreign_shape(root) is not None


def is_same_entry(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two entries reach the same server in the same way; being switched off does not count."""
    alike = [{key: each[key] for key in each if key not in {"enabled", "disabled"}} for each in (one, other)]
    return with_own_keys(alike[0]) == with_own_keys(alike[1])


def _check_added(text: str, path: Path, names: Iterable[str]) -> str:
    """The changed text, if each of these servers can be read in it."""
    servers = parse_settings(text, path, os.environ).servers
    for name in names:
        added = servers[fold_server_name(name)]
        if added.malformed:
            raise ConfigError(added.problem or "")
    return text


@dataclass(frozen=True, slots=True)
class RemovedEntry:
    """An entry that was taken out, and the whole file before and after. It may hold secrets."""

    name: str
    entry: Mapping[str, Any] = field(repr=False)
    before: str = field(repr=False)
    after: str = field(repr=False)


def remove_server(path: Path, name: str, *, needs_trust: bool = False) -> RemovedEntry:
    """Take an entry out; one that is not there is an error."""
    removed: list[RemovedEntry] = []

    def change(text: str) -> str:
        section, given = _entry(path, text, name)
        after = jsonc.remove(text, (section, given))
        removed.append(RemovedEntry(given, as_object(_root(text)[section][given]) or {}, text, after))
        return after

    _rewrite(path, change, needs_trust=needs_trust)
    return removed[-1]


def restore_server(path: Path, removed: RemovedEntry, *, needs_trust: bool = False) -> None:
    """Put an entry back: byte for byte, if nothing else has changed since; else behind the others."""

    def change(text: str) -> str:
        if text == removed.after:
            return removed.before
        if _find(text, removed.name) is not None:
            raise ServerExistsError(f'{path}: there is a server "{removed.name}" already')
        return _set_new(text, removed.name, removed.entry)

    _rewrite(path, change, needs_trust=needs_trust, is_private=has_secret(removed.entry))


def switch_server(
    path: Path, name: str, *, enabled: bool, known_elsewhere: bool = False, needs_trust: bool = False
) -> None:
    """Set `enabled` on an entry; a server known only from the environment gets an entry for it."""

    def change(text: str) -> str:
        found = _find(text, name)
        if found is None and known_elsewhere:
            return _set_new(text, name, {"enabled": enabled})
        entry = _entry(path, text, name)
        current = as_object(_root(text)[entry[0]][entry[1]])
        if current is None:
            raise ConfigError(f"{path}: {'.'.join(entry)} must be an object")
        if "disabled" in current:
            text = jsonc.remove(text, (*entry, "disabled"))
            current = {key: value for key, value in current.items() if key != "disabled"}
        if enabled and "enabled" not in current:
            return text
        return jsonc.set_value(text, (*entry, "enabled"), enabled)

    _rewrite(path, change, needs_trust=needs_trust)


def _set_new(text: str, name: str, entry: Mapping[str, object]) -> str:
    root = _root(text)
    section = next((section for section in SECTIONS if section in root), SECTIONS[0])
    if root.get(section) is None:
        return jsonc.set_value(text, (section,), {name: dict(entry)})
    return jsonc.set_value(text, (section, name), dict(entry))


def _set_all_new(text: str, path: Path, entries: Mapping[str, Mapping[str, object]]) -> str:
    """The text with all of these entries: it is taken apart once, however many they are."""
    root = _root(text)
    taken = {fold_server_name(name) for section in SECTIONS for name in as_object(root.get(section)) or {}}
    for name in entries:
        if fold_server_name(name) in taken:
            raise ServerExistsError(f'{path}: there is a server "{name}" already')
        taken.add(fold_server_name(name))
    section = next((section for section in SECTIONS if section in root), SECTIONS[0])
    if root.get(section) is None:
        return jsonc.set_value(text, (section,), {name: dict(entry) for name, entry in entries.items()})
    return jsonc.add_members(text, (section,), entries)


def _entry(path: Path, text: str, name: str) -> tuple[str, str]:
    found = _find(text, name)
    if found is None:
        known = [given for section in SECTIONS for given in as_object(_root(text).get(section)) or {}]
        close = nearest(name, known, limit=1)
        hint = f'; did you mean "{close[0]}"?' if close else ""
        raise UnknownServerError(f'{path}: there is no server "{name}"{hint}')
    return found


def _find(text: str, name: str) -> tuple[str, str] | None:
    folded = fold_server_name(name)
    for section in SECTIONS:
        for given in cast("dict[str, Any]", _root(text).get(section) or {}):
            if fold_server_name(given) == folded:
                return section, given
    return None


def _root(text: str) -> dict[str, Any]:
    return cast("dict[str, Any]", jsonc.parse(text).value) if text.strip() else {}


def _rewrite(
    path: Path,
    change: Callable[[str], str],
    *,
    needs_trust: bool,
    is_private: bool = False,
    is_new_file: bool = False,
    with_backup: bool = False,
) -> Path | None:
    """Read, change, check and put in place in one step, so that no reader ever sees half a file. Gives the backup."""
    with _alone_with(path):
        content = _read(path)
        if needs_trust:
            check_trust(path, content)
        text = decode(content, path)
        if text.strip() and not is_new_file:
            parse_settings(text, path, os.environ)
        changed = change(text)
        parse_settings(changed, path, os.environ)
        return _write(path, content, changed, is_private=is_private, with_backup=with_backup)


@contextlib.contextmanager
def _alone_with(path: Path) -> Generator[None]:
    """Of two processes that change the same file, one waits: neither's change is lost."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(alone_with(path))
        except (OSError, RuntimeError) as exc:
            raise ConfigWriteError(f"{path}: {getattr(exc, 'strerror', None) or exc}") from None
        yield


def _write(path: Path, content: bytes, changed: str, *, is_private: bool, with_backup: bool) -> Path | None:
    try:
        # Editors and `git pull` know nothing of our lock.
        if _read(path) != content:
            raise ConfigWriteError(f"{path}: somebody else changed it just now; nothing was written, try again")
        backup = keep_backup(content) if with_backup and content.strip() else None
        _put(path, changed, is_private=is_private)
        # A change of our own is no reason to ask again.
        if (store := trust_store()).holds(path, content):
            store.add(path, changed.encode())
    except OSError as exc:
        raise ConfigWriteError(f"{path}: it cannot be written: {exc.strerror or exc}") from None
    return backup


def _read(path: Path) -> bytes:
    try:
        return read_file(path)
    except FileNotFoundError:
        return b""
    except OSError as exc:
        raise ConfigError(f"{path}: {exc.strerror or exc}") from None


def _put(path: Path, text: str, *, is_private: bool) -> None:
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        # newline="" keeps the file's own line endings.
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        # A new file is for its owner alone, and so is one that gets a secret.
        if target.exists() and not is_private:
            Path(draft).chmod(target.stat().st_mode & 0o777)
        Path(draft).replace(target)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
