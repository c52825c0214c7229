"""Reads the `audit` section. What is not understood there is an error: a misspelt key would keep what it should not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pegboard.config.audit_settings import MEGABYTE, AuditSettings, KeptArguments
from pegboard.config.section import SectionContext
from pegboard.config.shape import ConfigNode
from pegboard.names import nearest

_KEYS = ("keep", "bytes", "arguments", "redact", "strict", "file")
_MOST_DAYS = 36_500
_MOST_BYTES = 2**50


def read_audit(node: ConfigNode, context: SectionContext) -> Mapping[str, Any]:
    """The section as settings; `false` is none."""
    if isinstance(node.value, bool):
        return {"audit": AuditSettings(enabled=node.value)}
    for key in node.members():
        if key not in _KEYS:
            close = nearest(key, _KEYS, 1)
            hint = f"; did you mean {close[0]}?" if close else f": there are {', '.join(_KEYS)}"
            raise node.wrong(f"has {key[:80]!r}, which is not a setting{hint}")
    fields: dict[str, Any] = {}
    if keep := node.get("keep"):
        fields["keep"] = keep.whole_number(1, _MOST_DAYS)
    if most := node.get("bytes"):
        fields["bytes"] = most.whole_number(MEGABYTE, _MOST_BYTES)
    if arguments := node.get("arguments"):
        fields["arguments"] = cast("KeptArguments", arguments.one_of("digest", "names", "values"))
    if redact := node.get("redact"):
        fields["redact"] = {child.key: _pointers(child) for child in redact.children()}
    if strict := node.get("strict"):
        fields["strict"] = strict.flag()
    if file := node.get("file"):
        fields["file"] = context.folder(file, file.text())
    return {"audit": AuditSettings(**fields)}


def _pointers(node: ConfigNode) -> tuple[str, ...]:
    pointers = node.texts()
    for pointer in pointers:
        if not pointer.startswith("/"):
            raise node.wrong(f'has "{pointer[:40]}", which is no JSON pointer: begin it with /')
    return pointers
