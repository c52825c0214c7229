"""Changes one server's entry in the config file; everything else in it stays byte for byte.

A file that needs trust is changed only while it says what was trusted: our own change stays trusted, and must not make
what came from outside trusted too.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any, cast

from pegboard.config import jsonc
from pegboard.config.file import read_file
from pegboard.config.locate import trust_store
from pegboard.config.lock import alone_with
from pegboard.config.read import check_trust, decode, parse_settings
from pegboard.config.settings import ConfigError, ConfigWriteError, UnknownServerError
from pegboard.exactjson import as_object
from pegboard.names import fold_server_name, nearest

_SECTIONS = ("mcpServers", "servers")


def add_server(path: Path, name: str, entry: Mapping[str, object], *, needs_trust: bool = False) -> None:
    """Write a new entry; a name that is taken is an error."""

    def change(text: str) -> str:
        if _find(text, name) is not None:
            raise ConfigError(f'{path}: there is a server "{name}" already')
        changed = _set_new(text, name, entry)
        added = parse_settings(changed, path, os.environ).servers[fold_server_name(name)]
        if added.malformed:
            raise ConfigError(added.problem or "")
        return changed

    _rewrite(path, change, needs_trust=needs_trust)


def remove_server(path: Path, name: str, *, needs_trust: bool = False) -> None:
    """Take an entry out; one that is not there is an error."""
    _rewrite(path, lambda text: jsonc.remove(text, _entry(path, text, name)), needs_trust=needs_trust)


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
    section = next((section for section in _SECTIONS if section in root), _SECTIONS[0])
    if root.get(section) is None:
        return jsonc.set_value(text, (section,), {name: dict(entry)})
    return jsonc.set_value(text, (section, name), dict(entry))


def _entry(path: Path, text: str, name: str) -> tuple[str, str]:
    found = _find(text, name)
    if found is None:
        known = [given for section in _SECTIONS for given in as_object(_root(text).get(section)) or {}]
        close = nearest(name, known, limit=1)
        hint = f'; did you mean "{close[0]}"?' if close else ""
        raise UnknownServerError(f'{path}: there is no server "{name}"{hint}')
    return found


def _find(text: str, name: str) -> tuple[str, str] | None:
    folded = fold_server_name(name)
    for section in _SECTIONS:
        for given in cast("dict[str, Any]", _root(text).get(section) or {}):
            if fold_server_name(given) == folded:
                return section, given
    return None


def _root(text: str) -> dict[str, Any]:
    return cast("dict[str, Any]", jsonc.parse(text).value) if text.strip() else {}


def _rewrite(path: Path, change: Callable[[str], str], *, needs_trust: bool) -> None:
    """Read, change, check and put in place in one step, so that no reader ever sees half a file."""
    with _alone_with(path):
        _rewrite_alone(path, change, needs_trust=needs_trust)


@contextlib.contextmanager
def _alone_with(path: Path) -> Generator[None]:
    """Of two processes that change the same file, one waits: neither's change is lost."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(alone_with(path))
        except (OSError, RuntimeError) as exc:
            raise ConfigWriteError(f"{path}: {getattr(exc, 'strerror', None) or exc}") from None
        yield


def _rewrite_alone(path: Path, change: Callable[[str], str], *, needs_trust: bool) -> None:
    content = _read(path)
    if needs_trust:
        check_trust(path, content)
    text = decode(content, path)
    if text.strip():
        parse_settings(text, path, os.environ)
    changed = change(text)
    parse_settings(changed, path, os.environ)
    try:
        # Editors and `git pull` know nothing of our lock.
        if _read(path) != content:
            raise ConfigWriteError(f"{path}: somebody else changed it just now; nothing was written, try again")
        _put(path, changed)
        # A change of our own is no reason to ask again.
        if (store := trust_store()).holds(path, content):
            store.add(path, changed.encode())
    except OSError as exc:
        raise ConfigWriteError(f"{path}: it cannot be written: {exc.strerror or exc}") from None


def _read(path: Path) -> bytes:
    try:
        return read_file(path)
    except FileNotFoundError:
        return b""
    except OSError as exc:
        raise ConfigError(f"{path}: {exc.strerror or exc}") from None


def _put(path: Path, text: str) -> None:
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        # newline="" keeps the file's own line endings.
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        if target.exists():
            Path(draft).chmod(target.stat().st_mode & 0o777)
        Path(draft).replace(target)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
