"""A session object of VS Code, of any version, as a chat. Anything in it may be missing, or something else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pegboard.exactjson import as_object
from pegboard.toolsets.chats.fields import a_list, a_markdown, a_moment, a_name, a_text, an_object
from pegboard.toolsets.chats.log import Log, Shape
from pegboard.toolsets.chats.reading import UnreadableChat
from pegboard.toolsets.chats.session import Chat, ChatRequest, Status, ToolUse

_MARKDOWN: Shape = {"value": {}}
_URI: Shape = dict.fromkeys(("path", "fsPath", "external", "scheme"))
_PART: Shape = {
    "kind": {},
    "value": _MARKDOWN,
    "content": _MARKDOWN,
    "toolId": {},
    "toolCallId": {},
    "invocationMessage": _MARKDOWN,
    "pastTenseMessage": _MARKDOWN,
    "toolSpecificData": {"rawInput": None, "commandLine": None, "command": {}},
    "resultDetails": {"input": None, "isError": {}, "output": {"value": {}, "isText": {}, "type": {}}},
    "inlineReference": {"uri": _URI, "name": {}, "location": {"uri": _URI}, **_URI},
    "name": {},
    "uri": _URI,
}
_REQUEST: Shape = {
    "requestId": {},
    "timestamp": {},
    "message": {"text": {}, "parts": {"text": {}}},
    "response": _PART,
    "result": {"metadata": {"sessionId": {}}, "errorDetails": None, "timings": {}},
    "modelState": {"value": {}},
    "isCanceled": {},
    "agent": {"id": {}},
    "modelId": {},
    # Whole, whatever they are: an object without its keys would say nothing, and be taken for no.
    "isHidden": None,
    "shouldBeRemovedOnSend": None,
}
# Everything that is looked at below: the rest of a session is most of it.
SHAPE: Shape = {
    "version": {},
    "sessionId": {},
    "creationDate": {},
    "lastMessageDate": {},
    "customTitle": {},
    "computedTitle": {},
    "requests": _REQUEST,
}
_STATES: dict[int, Status] = {0: "pending", 1: "completed", 2: "canceled", 3: "failed", 4: "in_progress"}
_MOST_OUTPUT = 4000


class DialogLog:
    """The log of a session."""

    chained = True

    def __init__(self) -> None:
        self._log = Log(SHAPE)

    def take(self, line: bytes) -> None:
        """One change."""
        self._log.take(line)

    def chat(self) -> Chat:
        """The session as it is now."""
        return chat_of(self._log.state)


def chat_of(session: object) -> Chat:
    """The chat that a session object stands for."""
    data = as_object(session)
    if data is None:
        raise UnreadableChat("it holds no session")
    raw = [found for request in a_list(data.get("requests")) if (found := as_object(request)) is not None]
    return Chat(
        requests=[_request(request) for request in raw if not _is_undone(request)],
        session_id=a_name(data.get("sessionId")) or _id_within(raw),
        title=a_name(data.get("customTitle")) or a_name(data.get("computedTitle")),
        created=a_moment(data.get("creationDate")),
        active=a_moment(data.get("lastMessageDate")),
    )


def chat_of_export(session: object) -> Chat:
    """The same for a file that may be anything: only what has requests is a chat."""
    if not isinstance(an_object(session).get("requests"), list):
        raise UnreadableChat("it holds no chat")
    return chat_of(session)


def _id_within(requests: Sequence[dict[str, Any]]) -> str | None:
    """An export does not say which session it was, but its results do."""
    for request in requests:
        metadata = an_object(an_object(request.get("result")).get("metadata"))
        if found := a_name(metadata.get("sessionId")):
            return found
    return None


def _is_undone(request: dict[str, Any]) -> bool:
    # `shouldBeRemovedOnSend` is true, or an object that says after which edit.
    return bool(request.get("isHidden")) or bool(request.get("shouldBeRemovedOnSend"))


def _request(request: dict[str, Any]) -> ChatRequest:
    response = request.get("response")
    parts = [response] if isinstance(response, str) else a_list(response)
    details = an_object(an_object(request.get("result")).get("errorDetails"))
    return ChatRequest(
        text=_message(request.get("message")),
        timestamp=a_moment(request.get("timestamp")),
        request_id=a_name(request.get("requestId")),
        answer="".join(_words(parts)).strip(),
        tool_calls=[_tool_call(an_object(part)) for part in parts if _kind(part) == "toolInvocationSerialized"],
        edited=_edit_paths(parts),
        error=a_name(details.get("message")),
        status=_status(request, bool(parts)),
        agent_id=a_name(an_object(request.get("agent")).get("id")),
        model_id=a_name(request.get("modelId")),
    )


def _message(message: object) -> str:
    if isinstance(message, str):
        return message
    data = an_object(message)
    return a_text(data.get("text")) or "".join(
        a_text(an_object(part).get("text")) for part in a_list(data.get("parts"))
    )


def _status(request: dict[str, Any], answered: bool) -> Status:
    state = an_object(request.get("modelState")).get("value")
    if type(state) is int and state in _STATES:
        return _STATES[state]
    result = an_object(request.get("result"))
    if request.get("isCanceled") is True or an_object(result.get("errorDetails")).get("code") == "canceled":
        return "canceled"
    if result.get("errorDetails"):
        return "failed"
    if "result" in request:
        return "completed"
    return "in_progress" if answered else "pending"


def _kind(part: object) -> str | None:
    kind = an_object(part).get("kind")
    return kind if kind is None or isinstance(kind, str) else "?"


def _words(parts: Sequence[Any]) -> Iterator[str]:
    """The answer's own words; what was thought, done and edited on the way is not among them."""
    for part in parts:
        data = an_object(part)
        kind = _kind(part)
        if isinstance(part, str):
            yield part
        elif kind is None:
            yield a_markdown(data.get("value")) or a_markdown(data.get("content"))
        elif kind in {"markdownContent", "markdownVuln", "warning"}:
            yield a_markdown(data.get("content"))
        elif kind == "inlineReference":
            yield f"`{_reference(data)}`"


def _reference(part: dict[str, Any]) -> str:
    reference = an_object(part.get("inlineReference"))
    place = reference.get("uri") or an_object(reference.get("location")).get("uri") or reference
    name = a_name(part.get("name")) or a_name(reference.get("name"))
    return name or _path(place).replace("\\", "/").rpartition("/")[2] or "…"


def _path(uri: object) -> str:
    data = an_object(uri)
    return a_text(uri) or a_text(data.get("fsPath")) or a_text(data.get("path")) or a_text(data.get("external"))


def _edit_paths(parts: Sequence[Any]) -> list[str]:
    paths = (
        _path(an_object(part).get("uri")) for part in parts if _kind(part) in {"textEditGroup", "notebookEditGroup"}
    )
    return list(dict.fromkeys(path for path in paths if path))


def _tool_call(part: dict[str, Any]) -> ToolUse:
    specific, details = an_object(part.get("toolSpecificData")), an_object(part.get("resultDetails"))
    given = next(
        (
            value
            for value in (
                specific.get("rawInput"),
                specific.get("commandLine"),
                specific.get("command"),
                details.get("input"),
            )
            if value is not None
        ),
        None,
    )
    output = "\n".join(
        a_text(an_object(each).get("value"))
        for each in a_list(details.get("output"))
        if an_object(each).get("isText") is not False
    )
    return ToolUse(
        name=a_text(part.get("toolId")) or "tool",
        message=a_markdown(part.get("pastTenseMessage")) or a_markdown(part.get("invocationMessage")),
        input=given,
        output=output.strip()[:_MOST_OUTPUT],
        failed=details.get("isError") is True,
    )
