"""A session as Markdown, for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b

from pegboard import exactjson
from pegboard.toolsets.chats.fields import iso
from pegboard.toolsets.chats.session import ChatRequest, ChatSession, ToolUse

_FENCE = re.compile("`{3,}|~{3,}")
_MOST_INPUT = 2000
_UNFIT = re.compile(r"[\W_]+")
_UNFIT_IN_ID = re.compile(r"[^\w-]+")
_MOST_TITLE, _MOST_ID = 50, 80


def markdown(session: ChatSession, requests: Sequence[ChatRequest], first: int = 1) -> str:
    """These requests of it, of which the first has that number: each with what was done, and the answer."""
    turns = (line for number, request in enumerate(requests, first) for line in _turn(number, request))
    return "\n".join((*_head(session), *turns))


def file_name(session: ChatSession) -> str:
    """A name for the file of a session: its day, its title, and its id, which no two share."""
    day = (iso(session.first_seen) or "")[:10]
    title = _UNFIT.sub("-", session.title or session.first_request_preview or "").strip("-").lower()[:_MOST_TITLE]
    return "-".join(filter(None, (day, title.rstrip("-"), _fit(session.session_id)))) + ".md"


def _fit(session_id: str) -> str:
    """An id as part of a file's name. Another id may look the same then: a digest tells them apart."""
    fit = _UNFIT_IN_ID.sub("-", session_id.lower())[:_MOST_ID]
    if fit == session_id:
        return fit
    return f"{fit}-{blake2b(session_id.encode('utf-8', 'surrogatepass'), digest_size=4).hexdigest()}"


def _head(session: ChatSession) -> Iterator[str]:
    yield f"# {_line(session.title or session.first_request_preview or session.session_id)}"
    yield ""
    facts = {
        "Session": session.session_id,
        "From": session.source,
        "Folder": session.workspace,
        "Begun": iso(session.first_seen),
        "Last activity": iso(session.last_seen),
        "Model": session.model_id,
        "Requests": str(session.requests_count),
        "Problem": session.problem,
    }
    yield from (f"- {name}: {_line(value)}" for name, value in facts.items() if value)
    yield ""


def _turn(number: int, request: ChatRequest) -> Iterator[str]:
    when = iso(request.timestamp)
    yield f"## {number}. Request{f' ({when})' if when else ''}"
    yield ""
    yield from (f"> {line}".rstrip() for line in request.text.splitlines() or [""])
    yield ""
    for call in request.tool_calls:
        yield from _call(call)
    yield from (f"- edited `{_line(path)}`" for path in request.edited)
    if request.tool_calls or request.edited:
        yield ""
    if request.answer:
        yield _close_fence(request.answer)
        yield ""
    if request.status in {"failed", "canceled"}:
        yield f"*{request.status}{f': {_line(request.error)}' if request.error else ''}*"
        yield ""


def _call(call: ToolUse) -> Iterator[str]:
    said = f": {_line(call.message)}" if call.message else ""
    yield f"- `{_line(call.name)}`{' (failed)' if call.failed else ''}{said}"
    if call.input is not None:
        text = call.input if isinstance(call.input, str) else exactjson.dump(call.input).decode()
        yield f"  `{_line(text)[:_MOST_INPUT].replace('`', chr(39))}`"


def _close_fence(text: str) -> str:
    """An answer that broke off within a block of code must not swallow the rest of the page."""
    fence: str | None = None
    for line in text.splitlines():
        found = _FENCE.match(line.lstrip())
        if fence is None and found:
            fence = found.group()
        elif fence is not None and found and found.group().startswith(fence) and not line.strip().strip(fence[0]):
            fence = None
    return text if fence is None else f"{text}\n{fence}"


def _line(text: str) -> str:
    return " ".join(text.split())
