"""Chats as rows for models, programs and people: the same over MCP, REST and on the command line."""

from __future__ import annotations

from typing import Any

from pegboard import exactjson
from pegboard.text import truncate
from pegboard.toolsets.chats.chats import ChatHit, ChatPage
from pegboard.toolsets.chats.fields import iso
from pegboard.toolsets.chats.session import ChatRequest, ChatSession, ToolUse

MOST_DETAIL = 500


def session_row(session: ChatSession) -> dict[str, Any]:
    """A session in a list; where its file is concerns nobody."""
    row = session.to_dict()
    del row["chatJsonPath"]
    row["lastActivity"] = iso(session.last_seen)
    return {**row, "problem": session.problem} if session.problem else row


def hit_row(hit: ChatHit) -> dict[str, Any]:
    """A request that was found."""
    return {
        "sessionId": hit.session.session_id,
        "title": hit.session.title or hit.session.first_request_preview,
        "workspace": hit.session.workspace,
        "index": hit.index,
        "timestamp": hit.request.timestamp,
        "excerpt": hit.excerpt,
    }


def page_info(page: ChatPage[Any]) -> dict[str, Any]:
    """Where a page stands among all there is."""
    told: dict[str, Any] = {"pagination": page.pagination()}
    if page.unread:
        told["message"] = f"{page.unread} chats or requests are not read yet: call again for the rest."
    elif page.cut:
        told["message"] = f"More than the best {page.total} were found: add words, a workspace or a sessionId."
    return told


def turn(index: int, request: ChatRequest) -> dict[str, Any]:
    """A request and its answer, in full."""
    row: dict[str, Any] = {
        "index": index,
        "timestamp": request.timestamp,
        "request": request.text,
        "response": request.answer,
        "status": request.status,
        "modelId": request.model_id,
        "toolCalls": [call.to_dict() for call in request.tool_calls],
        "editedFiles": list(request.edited),
    }
    return {**row, "problem": request.error} if request.error else row


def call_row(call: ToolUse) -> dict[str, Any]:
    """A tool that ran, in brief."""
    told = call.to_dict()
    if call.input is not None:
        written = call.input if isinstance(call.input, str) else exactjson.dump(call.input).decode()
        told["input"] = call.input if len(written) <= MOST_DETAIL else truncate(written, MOST_DETAIL)
    for name in ("message", "output"):
        if name in told:
            told[name] = truncate(told[name], MOST_DETAIL)
    return told
