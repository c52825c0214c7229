"""Results of tools as a client's era expects them: as objects, and as JSON that is opened no further than needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from pegboard.protocol import raw_json
from pegboard.protocol.eras import SERVER_INFO_KEY, Era
from pegboard.protocol.raw_json import Part


def result_for(
    era: Era, result: Mapping[str, Any], *, server_info: Mapping[str, Any], cacheable: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A server's result as a client of this era expects it; what neither era defines stays untouched."""
    shaped = dict(result)
    meta = shaped.get("_meta")
    own = (
        {key: value for key, value in cast("dict[str, Any]", meta).items() if key != SERVER_INFO_KEY}
        if isinstance(meta, dict)
        else None
    )
    if era == "modern":
        shaped.setdefault("resultType", "complete")
        if shaped["resultType"] == "complete":
            shaped.update({key: value for key, value in (cacheable or {}).items() if key not in shaped})
        shaped["_meta"] = {**(own or {}), SERVER_INFO_KEY: dict(server_info)}
        return shaped
    if shaped.get("resultType") == "complete":
        del shaped["resultType"]
    if not isinstance(shaped.get("structuredContent", {}), dict):
        # Only an object can stand there before the modern era; the same value stands in the content as text.
        del shaped["structuredContent"]
    for key in cacheable or ():
        # How long something holds is a matter of the modern era.
        shaped.pop(key, None)
    if own is not None:
        if own or not isinstance(meta, dict) or SERVER_INFO_KEY not in meta:
            shaped["_meta"] = own
        else:
            del shaped["_meta"]
    return shaped


@dataclass(frozen=True, slots=True)
class RawResult:
    """A result as JSON, in pieces that are to be written one after another."""

    pieces: list[Part]
    is_error: bool
    # Whether it is about a task, which clients know by a name of ours.
    has_task: bool


def shape_raw(era: Era, result: Part, server_info: bytes) -> RawResult | None:
    """The same of a result that is still JSON; `None` where that takes more than a look at its members."""
    parts = raw_json.parts(result)
    if parts is None:
        return None
    kind, given = parts.get("resultType"), parts.get("_meta")
    meta = bytes(given) if given is not None else None
    if kind not in {None, b'"complete"'} or (meta is not None and not meta.startswith(b"{")):
        return None
    is_error = parts.get("isError") == b"true"
    has_task = "task" in parts or "taskId" in parts
    if era == "modern":
        stamped = raw_json.with_server_info(meta, server_info)
        if stamped is None:
            return None
        parts |= {"resultType": b'"complete"', "_meta": stamped}
        return RawResult(raw_json.pieces(parts), is_error, has_task)
    structured = parts.get("structuredContent")
    if kind is None and meta is None and (structured is None or structured[:1] == b"{"):
        return RawResult([result], is_error, has_task)
    parts.pop("resultType", None)
    if structured is not None and structured[:1] != b"{":
        del parts["structuredContent"]
    own = raw_json.members(meta) if meta is not None else None
    if own is not None and own.pop(SERVER_INFO_KEY, None) is not None:
        parts.pop("_meta")
        parts |= {"_meta": raw_json.join(own)} if own else {}
    return RawResult(raw_json.pieces(parts), is_error, has_task)
