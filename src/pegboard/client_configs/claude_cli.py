"""Claude Code through its own command line: its sessions rewrite their file all the time, and it locks the file."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping
from typing import Any

from pegboard.client_configs.document import ClientFileError
from pegboard.client_configs.place import Place
from pegboard.client_configs.program import ClientFile, ClientProgram

_LIMIT = 60.0
# Claude Code takes no others.
_NAME = re.compile(r"[A-Za-z0-9_-]+")


def is_usable(client: ClientProgram, file: ClientFile, place: Place) -> bool:
    """Whether a change of this file goes through `claude`. On Windows that is a batch file, which spoils JSON."""
    is_user_file = file.path.name == ".claude.json"
    return client.id == "claude-code" and is_user_file and place.system != "windows" and place.has_program("claude")


def install(name: str, entry: Mapping[str, Any], leaving: Collection[str], place: Place) -> None:
    """Add the entry, after those that leave; `ClientFileError` with what `claude` says if it fails."""
    if not takes_name(name):
        raise ClientFileError(f"Claude Code takes names of letters, digits, '-' and '_': {name!r} is none")
    for each in leaving:
        _remove(each, place)
    _add(name, entry, place)


def uninstall(names: Collection[str], restored: Mapping[str, Any], place: Place) -> None:
    """Take entries out, and add those that come back; `ClientFileError` with what `claude` says if it fails."""
    for each in names:
        _remove(each, place)
    for name, entry in restored.items():
        _add(name, entry, place)


def takes_name(name: str) -> bool:
    """Whether `claude` would add an entry of this name."""
    return _NAME.fullmatch(name) is not None


def _add(name: str, entry: Mapping[str, Any], place: Place) -> None:
    _run(place, "add-json", "-s", "user", name, json.dumps(dict(entry), ensure_ascii=False))


def _remove(name: str, place: Place) -> None:
    _run(place, "remove", "-s", "user", name)


def _run(place: Place, *words: str) -> None:
    program = shutil.which("claude", path=place.environment.get("PATH", "")) or "claude"
    try:
        done = subprocess.run(  # noqa: S603  the user's own program, with words of ours
            [program, "mcp", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=dict(place.environment),
            cwd=place.home,
            timeout=_LIMIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise ClientFileError(f"`claude mcp {words[0]}` failed: {exc}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()[:300]
        raise ClientFileError(f"`claude mcp {words[0]}` failed: {said or f'exit code {done.returncode}'}")
