"""Servers that a client has beside Pegboard, though Pegboard serves them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pegboard.client_configs.document import ServerDocument
from pegboard.client_configs.entries import EntryTarget, read_target

if TYPE_CHECKING:
    from pegboard.client_configs.context import InstallContext

# `${env:X}` of one client is `${X}` of another.
_VARIABLE = re.compile(r"\$\{env:(\w+)\}|\{env:(\w+)\}")
_BRIDGE = re.compile(r"mcp-remote(?:@.*)?")


def overlapping_servers(document: ServerDocument, context: InstallContext, own_name: str) -> list[str]:
    """The names of entries that lead where an entry of Pegboard's own config leads."""
    served = {_core(target) for entry in context.own_servers().values() if (target := read_target(entry))}
    names: list[str] = []
    for name, entry in document.servers().items():
        target = read_target(entry)
        if name != own_name and target is not None and _core(target) in served:
            names.append(name)
    return names


def _core(target: EntryTarget) -> tuple[str, ...]:
    """What tells one server from another: its address, or its command with its arguments."""
    target = _unbridge(target)
    if target.url is not None:
        return ("http", _plain(target.url).rstrip("/"))
    return ("stdio", *map(_plain, (target.command, *target.args)))


def _unbridge(target: EntryTarget) -> EntryTarget:
    """Of `npx mcp-remote URL`, the address."""
    words = (target.command, *target.args)
    for at, word in enumerate(words[:-1]):
        if _BRIDGE.fullmatch(word) and words[at + 1].startswith("http"):
            return replace(target, url=words[at + 1])
    return target


def _plain(text: str) -> str:
    return _VARIABLE.sub(lambda match: f"${{{match[1] or match[2]}}}", text)
