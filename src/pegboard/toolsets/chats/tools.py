"""The chat tools: what an agent may look up in the dialogs that its user had.

Their answers are flat: `{"success": true, …}`, `{"success": false, "error": "text"}`, and for an exception
`{"isError": true, "message": "text"}`.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from pegboard.result import ToolError, ToolErrorCode
from pegboard.text import truncate
from pegboard.tool import MAX_VALUES, LanguageModelToolResult, Tool
from pegboard.toolsets.chats.answers import MOST_DETAIL, call_row, hit_row, page_info, session_row
from pegboard.toolsets.chats.chats import Chats, NotThere
from pegboard.toolsets.chats.current import PATIENCE, CurrentDialog
from pegboard.toolsets.chats.session import ChatRequest, ChatSession
from pegboard.toolsets.schemas import (
    BOOLEAN,
    INTEGER,
    MAYBE_INTEGER,
    MAYBE_STRING,
    PAGINATION,
    STRING,
    STRINGS,
    Schema,
    number,
)

PREFIX = "copilot_chat_secretary_"
_NAME = re.compile(rf"{PREFIX}[a-z][a-z0-9]*(_[a-z0-9]+)*")
_MOST_TEXT, _MOST_CALLS, _MOST_PREVIEW = 20_000, 50, 200

_INDEX = {
    "type": "integer",
    # Neither required nor bounded here: a missing one, and one below 1, have answers of their own.
    "description": "Which request, counted from 1 for the first. Required.",
    "examples": [1],
}
_SESSION_ID = {
    "type": "string",
    "description": "Id of the dialog. Left out: the current dialog.",
    "examples": ["0f8a7c1e-3b52-4d7a-9a51-6a4f0e3f2b11"],
}
_WORKSPACE = {
    "type": "string",
    "description": "Only dialogs of this folder and those below it, as a path or a file:// URI. Left out: of all.",
    "examples": ["/home/ada/shop"],
}


def _input(**properties: Schema) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _output(needed: str, **data: Schema) -> dict[str, Any]:
    """Success, failure and exception in one schema."""
    return {
        "type": "object",
        "properties": {"success": BOOLEAN, "error": STRING, "isError": BOOLEAN, "message": STRING, **data},
        "anyOf": [
            {"properties": {"success": {"const": True}}, "required": ["success", *needed.split()]},
            {"properties": {"success": {"const": False}}, "required": ["success", "error"]},
            {"properties": {"isError": {"const": True}}, "required": ["isError", "message"]},
        ],
    }


def _reads(title: str) -> dict[str, Any]:
    return {"title": title, "readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}


_SESSION_OUT = {
    "type": "object",
    "properties": {
        "sessionId": STRING,
        "title": MAYBE_STRING,
        "workspace": MAYBE_STRING,
        "source": STRING,
        "firstSeen": MAYBE_INTEGER,
        "lastSeen": MAYBE_INTEGER,
        "lastActivity": MAYBE_STRING,
        "requestsCount": INTEGER,
        "status": {"enum": ["pending", "in_progress", "completed", "failed", "canceled"]},
        "firstRequestPreview": MAYBE_STRING,
        "agentId": MAYBE_STRING,
        "modelId": MAYBE_STRING,
        "problem": STRING,
    },
    "required": ["sessionId", "requestsCount", "status"],
}


class ChatTool(Tool):
    """What all of them have in common: the current dialog, and the chats themselves."""

    category = "chats"
    max_values = MAX_VALUES
    name_prefix = PREFIX
    # What people said to their editor is nobody else's business.
    local_only = True
    asks = True

    def is_local_only(self) -> bool:
        """Unless the settings open the chats to other machines."""
        return not self._chats.allows_remote

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        # A class that others are made from has no name.
        name = getattr(cls, "name", None)
        if name is not None and not _NAME.fullmatch(name):
            raise ValueError(f"a chat tool's name is {PREFIX} and an action in snake_case: {cls.__name__}")

    def __init__(self, dialog: CurrentDialog, chats: Chats) -> None:
        self._dialog = dialog
        self._chats = chats

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """The answer, or why there is none."""
        try:
            return {"success": True, **await self.answer(_drop_nulls(arguments))}
        except NotThere as exc:
            return {"success": False, "error": str(exc)}

    async def call_for_data(self, arguments: Mapping[str, Any]) -> Any:
        """The answer alone; why there is none is raised."""
        return await self.answer(arguments)

    @abstractmethod
    async def answer(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What a call finds; `NotThere` with the words for it if that is nothing."""

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """A parameter that is null is one that was left out."""
        return super().check(_drop_nulls(arguments) if isinstance(arguments, Mapping) else arguments)  # pyright: ignore[reportUnnecessaryIsInstance]

    def render(self, answer: Any) -> LanguageModelToolResult:
        """The answer as it is; one that says so is a failure over MCP, too."""
        result = super().render(answer)
        if answer.get("success") is not False:
            return result
        error = ToolError(ToolErrorCode.NOT_FOUND, str(answer["error"]))
        return LanguageModelToolResult(result.content, is_error=True, data=result.data, error=error)

    async def _session(self, arguments: Mapping[str, Any]) -> ChatSession:
        # Models like to fill in what they leave out with nothing.
        session_id = arguments.get("sessionId")
        return await self._chats.session(session_id, patience=PATIENCE) if session_id else await self._dialog.session()

    async def _request(self, arguments: Mapping[str, Any]) -> tuple[ChatSession, int, ChatRequest]:
        """The request that is meant. What is wrong is told in this order, whatever else is wrong."""
        if "index" not in arguments:
            raise NotThere("Index parameter is required")
        index = int(arguments["index"])
        if index < 1:
            raise NotThere("Index must be 1 or greater")
        session = await self._session(arguments)
        return session, index, await self._chats.request(session, index)


class GetRequest(ChatTool):
    """One request, in full."""

    name = "copilot_chat_secretary_get_request"
    title = "Get a request of a dialog"
    description = """\
Get the full text of one user request from a chat dialog, by its position: 1 is the first, 2 the second, and so on.

Use this tool when:
- you need the exact words of an earlier request, for instance after the conversation was summarized or cut
- the user refers to a request by its number ("as I said in my second message")
- you want to go through the requests of a dialog one by one

Parameters:
- index (integer, required): position of the request, 1 or greater. Undone requests do not count.
- sessionId (string, optional): id of the dialog. Left out, the current dialog: the one with the newest activity.

Returns JSON; timestamp is in milliseconds since 1970, or null:
- {"success": true, "sessionId": "0f8a7c1e-…", "request": "Add a retry to the upload", "index": 2, \
"timestamp": 1767254400000, "totalRequests": 5}
- {"success": false, "error": "Index 10 exceeds total requests (5)"}

Example usage scenarios:
- The second request of the current dialog: {"index": 2}
- The third request of a certain dialog: {"index": 3, "sessionId": "0f8a7c1e-3b52-4d7a-9a51-6a4f0e3f2b11"}"""
    keywords = ("history", "conversation", "message", "prompt", "earlier", "said")
    input_schema = _input(index=_INDEX, sessionId=_SESSION_ID)
    output_schema = _output(
        "sessionId request index timestamp totalRequests",
        sessionId=STRING,
        request=STRING,
        index=INTEGER,
        timestamp=MAYBE_INTEGER,
        totalRequests=INTEGER,
    )
    annotations = _reads(title)

    async def answer(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        session, index, request = await self._request(arguments)
        return {
            "sessionId": session.session_id,
            "request": request.text,
            "index": index,
            "timestamp": request.timestamp,
            "totalRequests": session.requests_count,
        }


class GetFirstRequest(ChatTool):
    """How a dialog began."""

    name = "copilot_chat_secretary_get_first_request"
    title = "Get the first request of a dialog"
    description = """\
Get the beginning of the first user request of a chat dialog: what it was originally about.

Use this tool when:
- you need to know what the user wanted in the first place
- you want to name, summarize or document the dialog
- the dialog has drifted and you want to check the work against the original goal

Parameters:
- sessionId (string, optional): id of the dialog. Left out, the current dialog: the one with the newest activity.

Returns JSON; firstRequest has 80 characters at most, timestamp is when the dialog began, in milliseconds since 1970:
- {"success": true, "sessionId": "0f8a7c1e-…", "firstRequest": "Add a retry to the upload", \
"timestamp": 1767254400000, "requestsCount": 5}
- {"success": false, "error": "No active dialog found"}

Example usage scenarios:
- What the current dialog began with: {}
- What a certain dialog began with: {"sessionId": "0f8a7c1e-3b52-4d7a-9a51-6a4f0e3f2b11"}"""
    keywords = ("history", "conversation", "goal", "original", "topic", "start")
    input_schema = _input(sessionId=_SESSION_ID)
    output_schema = _output(
        "sessionId firstRequest timestamp requestsCount",
        sessionId=STRING,
        firstRequest=STRING,
        timestamp=MAYBE_INTEGER,
        requestsCount=INTEGER,
    )
    annotations = _reads(title)

    async def answer(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        session = await self._session(arguments)
        if not session.first_request_preview:
            raise NotThere("First request not available")
        return {
            "sessionId": session.session_id,
            "firstRequest": session.first_request_preview,
            "timestamp": session.first_seen,
            "requestsCount": session.requests_count,
        }


class GetResponse(ChatTool):
    """What came back."""

    name = "copilot_chat_secretary_get_response"
    title = "Get the answer to a request"
    description = f"""\
Get the answer to one user request of a chat dialog, with the tools that were used on the way and the files edited.

Use this tool when:
- you need to know what was answered or done earlier, not only what was asked
- you want to see which tools ran for a request, and with what outcome

Parameters:
- index (integer, required): position of the request, 1 or greater. Undone requests do not count.
- sessionId (string, optional): id of the dialog. Left out, the current dialog: the one with the newest activity.
- offset (integer, optional): character of the answer to begin with; a long one comes {_MOST_TEXT:,} at a time.

Returns JSON; with nextOffset there is more of the answer to read from there:
- {{"success": true, "sessionId": "0f8a7c1e-…", "index": 2, "totalRequests": 5, "request": "Add a retry to …", \
"response": "I wrapped the call …", "status": "completed", "timestamp": 1767254400000, \
"toolCalls": [{{"name": "copilot_readFile", "message": "Read upload.py"}}], "editedFiles": ["/home/ada/upload.py"]}}
- {{"success": false, "error": "Index 10 exceeds total requests (5)"}}

Example usage scenarios:
- The answer to the second request of the current dialog: {{"index": 2}}
- The rest of a long answer in a certain dialog: \
{{"index": 3, "sessionId": "0f8a7c1e-3b52-4d7a-9a51-6a4f0e3f2b11", "offset": {_MOST_TEXT}}}"""
    keywords = ("history", "conversation", "answer", "reply", "tool calls", "result")
    input_schema = _input(
        index=_INDEX,
        sessionId=_SESSION_ID,
        offset=number("Character of the answer to begin with", 0, None, 0),
    )
    output_schema = _output(
        "sessionId index totalRequests request response status timestamp toolCalls editedFiles",
        sessionId=STRING,
        index=INTEGER,
        totalRequests=INTEGER,
        request=STRING,
        response=STRING,
        status=STRING,
        timestamp=MAYBE_INTEGER,
        toolCalls={"type": "array", "items": {"type": "object"}},
        moreToolCalls=INTEGER,
        editedFiles=STRINGS,
        modelId=MAYBE_STRING,
        problem=STRING,
        nextOffset=INTEGER,
    )
    annotations = _reads(title)

    async def answer(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        session, index, request = await self._request(arguments)
        start = int(arguments["offset"])
        end = start + _MOST_TEXT
        told: dict[str, Any] = {
            "sessionId": session.session_id,
            "index": index,
            "totalRequests": session.requests_count,
            "request": truncate(request.text, _MOST_PREVIEW),
            "response": request.answer[start:end],
            "status": request.status,
            "timestamp": request.timestamp,
            "modelId": request.model_id,
            "toolCalls": [call_row(call) for call in request.tool_calls[:_MOST_CALLS]],
            "editedFiles": list(request.edited[:_MOST_CALLS]),
        }
        if len(request.tool_calls) > _MOST_CALLS:
            told["moreToolCalls"] = len(request.tool_calls) - _MOST_CALLS
        if request.error:
            told["problem"] = truncate(request.error, MOST_DETAIL)
        if len(request.answer) > end:
            told["nextOffset"] = end
        return told


class ListSessions(ChatTool):
    """Which dialogs there are."""

    name = "copilot_chat_secretary_list_sessions"
    title = "List dialogs"
    description = """\
List the chat dialogs on this machine, newest activity first, with title, workspace folder and number of requests.

Use this tool when:
- you look for the id of a dialog, to read its requests with the other tools
- the user asks what they worked on lately, or in a certain project

Parameters:
- limit (integer, optional): how many at most, 1 to 100; 20 if left out.
- offset (integer, optional): how many to pass over, for the next page.
- workspace (string, optional): only dialogs of this folder and those below it.

Returns JSON:
- {"success": true, "sessions": [{"sessionId": "0f8a7c1e-…", "title": "Upload retries", "workspace": "/home/ada/shop", \
"source": "Code", "requestsCount": 5, "status": "completed", "lastActivity": "2026-01-01T08:00:00Z", …}], \
"pagination": {"total": 42, "limit": 20, "offset": 0, "hasMore": true}}
- {"isError": true, "message": "limit: 0 is less than the minimum of 1"}

Example usage scenarios:
- The latest dialogs: {}
- The next page of those of one project: {"workspace": "/home/ada/shop", "limit": 20, "offset": 20}"""
    keywords = ("history", "conversations", "recent", "chats", "sessions", "overview")
    input_schema = _input(
        limit=number("How many at most", 1, 100, 20),
        offset=number("How many to pass over", 0, None, 0),
        workspace=_WORKSPACE,
    )
    output_schema = _output(
        "sessions pagination",
        sessions={"type": "array", "items": _SESSION_OUT},
        pagination=PAGINATION,
    )
    annotations = _reads(title)

    async def answer(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        page = await self._chats.list(
            int(arguments["limit"]),
            int(arguments["offset"]),
            arguments.get("workspace") or None,
            patience=PATIENCE,
        )
        return {"sessions": [session_row(session) for session in page.items], **page_info(page)}


class SearchChats(ChatTool):
    """Find something that was said."""

    name = "copilot_chat_secretary_search"
    title = "Search dialogs"
    description = """\
Search the full text of requests and answers in all chat dialogs on this machine.

Use this tool when:
- the user refers to something from an earlier dialog ("how did we fix the login bug last week?")
- you want to reuse a solution, a command or a decision from before

Parameters:
- query (string): words to look for, in any form; a "quoted phrase" word by word. Where no request has all of them,
  those that have any are found.
- limit (integer, optional): how many results at most, 1 to 50; 10 if left out.
- offset (integer, optional): how many to pass over, for the next page.
- workspace (string, optional): only dialogs of this folder and those below it.
- sessionId (string, optional): only this dialog.

Returns JSON, the best match first; index is for get_request and get_response, <mark> stands around what matched:
- {"success": true, "results": [{"sessionId": "0f8a7c1e-…", "title": "Upload retries", "workspace": "/home/ada/shop", \
"index": 2, "timestamp": 1767254400000, "excerpt": "Add a <mark>retry</mark> to the upload"}], \
"pagination": {"total": 1, "limit": 10, "offset": 0, "hasMore": false}}
- {"success": false, "error": "Query parameter is required"}

Example usage scenarios:
- Anywhere: {"query": "retry upload"}
- In one project, a phrase: {"query": "\\"exponential backoff\\" upload", "workspace": "/home/ada/shop"}"""
    keywords = ("history", "conversation", "find", "past", "discussed", "remember")
    input_schema = _input(
        query={"type": "string", "description": "What to look for", "maxLength": 2000, "examples": ["retry upload"]},
        limit=number("How many results at most", 1, 50, 10),
        offset=number("How many results to pass over", 0, None, 0),
        workspace=_WORKSPACE,
        sessionId={**_SESSION_ID, "description": "Only this dialog. Left out: all of them."},
    )
    output_schema = _output(
        "results pagination",
        results={
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "sessionId": STRING,
                    "title": MAYBE_STRING,
                    "workspace": MAYBE_STRING,
                    "index": INTEGER,
                    "timestamp": MAYBE_INTEGER,
                    "excerpt": STRING,
                },
                "required": ["sessionId", "index", "excerpt"],
            },
        },
        pagination=PAGINATION,
    )
    annotations = _reads(title)

    async def answer(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        query = arguments.get("query", "")
        if not query.strip():
            raise NotThere("Query parameter is required")
        page = await self._chats.search(
            query,
            int(arguments["limit"]),
            int(arguments["offset"]),
            arguments.get("workspace") or None,
            arguments.get("sessionId") or None,
            patience=PATIENCE,
        )
        return {"results": [hit_row(hit) for hit in page.items], **page_info(page)}


CHAT_TOOLS = (GetRequest, GetFirstRequest, GetResponse, ListSessions, SearchChats)


def chat_tools(chats: Chats, dialog: CurrentDialog | None = None) -> list[ChatTool]:
    """All of them."""
    known = dialog or CurrentDialog(chats)
    return [tool(known, chats) for tool in CHAT_TOOLS]


def _drop_nulls(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}
