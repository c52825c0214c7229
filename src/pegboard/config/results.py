"""Reads the `results` section, and that of a server's entry. A misspelt key is an error: it would cut nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.config.results_settings import ResultsSettings
from pegboard.config.section import SectionContext
from pegboard.config.shape import ConfigNode
from pegboard.names import nearest

# A note of what was left out, and something beside it, have room in so many characters.
LEAST_CAP = 200
MOST_CAP = 100_000_000
_OFF = ("off", False, 0)


def read_results(node: ConfigNode, _: SectionContext) -> Mapping[str, Any]:
    """The section as settings."""
    _refuse_unknown(node, ("cap", "clients", "tools"))
    fields: dict[str, Any] = {}
    if cap := node.get("cap"):
        fields["cap"] = _read_cap(cap)
    for key in ("clients", "tools"):
        if named := node.get(key):
            fields[key] = {child.key: _read_cap(child) for child in named.children()}
    return {"results": ResultsSettings(**fields)}


def read_server_results(node: ConfigNode) -> Mapping[str, Any]:
    """What a server's entry says of its results."""
    _refuse_unknown(node, ("cap", "handles"))
    found: dict[str, Any] = {}
    if cap := node.get("cap"):
        found["results_cap"] = _read_cap(cap)
    if handles := node.get("handles"):
        found["result_handles"] = handles.flag()
    return found


def _read_cap(node: ConfigNode) -> int:
    if node.value in _OFF:
        return 0
    if isinstance(node.value, str):
        raise node.mismatch(f'a number of characters from {LEAST_CAP} on, or 0 or "off"')
    return node.whole_number(LEAST_CAP, MOST_CAP, besides=", or 0")


def _refuse_unknown(node: ConfigNode, keys: tuple[str, ...]) -> None:
    for key in node.members():
        if key not in keys:
            close = nearest(key, keys, 1)
            hint = f"; did you mean {close[0]}?" if close else f": there are {', '.join(keys)}"
            raise node.wrong(f"has {key[:80]!r}, which is not a setting{hint}")
