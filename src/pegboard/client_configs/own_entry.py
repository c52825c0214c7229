"""Which entries of clients are Pegboard itself: a server of Pegboard that is Pegboard would call itself for ever."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

from pegboard.host_names import is_loopback_name

DEFAULT_PORT = 7420
_PROGRAM = re.compile(r"(?:.*[/\\])?pegboard(?:\.exe)?(?:@[\w.]+)?", re.IGNORECASE)
_RUNNERS = frozenset({"uvx", "uv", "pipx", "python", "python3", "py"})
_MOST_WORDS = 8


def is_own_entry(entry: Mapping[str, Any], ports: Collection[int] = ()) -> bool:
    """Whether an entry starts Pegboard, or leads to the address of one on this machine."""
    if isinstance(url := entry.get("url"), str):
        return _is_own_url(url, {DEFAULT_PORT, *ports})
    command = str(entry.get("command", ""))
    if _PROGRAM.fullmatch(command):
        return True
    args = [str(arg) for arg in entry.get("args", ())]
    program = re.split(r"[/\\]", command)[-1].lower().removesuffix(".exe")
    if program in _RUNNERS or re.fullmatch(r"python3?(\.\d+)?", program):
        return "stdio" in args and any(_PROGRAM.fullmatch(arg) for arg in args[:_MOST_WORDS])
    return False


def _is_own_url(url: str, ports: Collection[int]) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    is_mcp = parts.path == "/mcp" or parts.path.startswith("/mcp/")
    return is_mcp and port in ports and is_loopback_name(parts.hostname or "")
