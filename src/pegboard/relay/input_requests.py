"""Input requests: what a modern server wants to know, asked of a handshake client as questions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from pegboard.clients.caller import Caller
from pegboard.exactjson import as_list, as_object
from pegboard.protocol.codes import URL_ELICITATION_REQUIRED
from pegboard.result import ToolErrorCode, ToolFailure, unavailable
from pegboard.servers.attribution import attribute
from pegboard.servers.errors import RpcError, unusable_answer
from pegboard.servers.message import Message
from pegboard.servers.requester import Requester

_MAX_ROUNDS = 32
_MAX_VISITS = 3
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0

Send = Callable[[dict[str, Any]], Awaitable[Message]]


def wants_input(result: Message) -> bool:
    """Whether a result is no result yet."""
    return result.get("resultType") == "input_required"


async def fulfil(first: Message, send: Send, caller: Caller, label: str, patience: float) -> Message:
    """Put every wish for input to the caller, send its answers, and give the result that ends it."""
    result, pause = first, _FIRST_PAUSE
    deadline = asyncio.get_running_loop().time() + patience
    rounds = 0
    while wants_input(result):
        questions = _questions(result, label)
        more: dict[str, Any] = {}
        if questions:
            rounds += 1
            if rounds > _MAX_ROUNDS:
                raise unusable_answer(label, f"it asked for input more than {_MAX_ROUNDS} times")
            more["inputResponses"] = await _in_time(_answers(questions, caller, label), label, patience)
            pause = _FIRST_PAUSE
            deadline = asyncio.get_running_loop().time() + patience
        else:
            # It wants to be asked again, not to ask: for as long as the call may take.
            if asyncio.get_running_loop().time() > deadline:
                raise unavailable(f"{label} timed out: no result within {patience:g} s")
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
        if "requestState" in result:
            more["requestState"] = result["requestState"]
        result = await send(more)
    return result


async def retry_after_url_elicitation(
    send: Callable[[], Awaitable[Message]], requester: Requester, server: str
) -> Message:
    """A handshake server may refuse a request until its user has been to some pages (-32042), which the modern era
    has no word for: there it is put to the client as questions, and the request is sent again."""
    for _ in range(_MAX_VISITS):
        try:
            return await send()
        except RpcError as exc:
            pages = (
                as_list((as_object(exc.data) or {}).get("elicitations"))
                if exc.code == URL_ELICITATION_REQUIRED
                else None
            )
            if not pages or not await _visit_all(pages, requester, server):
                raise
    return await send()


async def _visit_all(pages: list[Any], requester: Requester, server: str) -> bool:
    wanted = [{"mode": "url", **(as_object(page) or {})} for page in pages]
    asked = [attribute("elicitation/create", page, server) for page in wanted]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_visit(requester, params)) for params in asked]
    return all(task.result() for task in tasks)


async def _visit(requester: Requester, params: dict[str, Any]) -> bool:
    try:
        return (await requester.on_request("elicitation/create", params, None)).get("action") == "accept"
    except RpcError:
        return False


def _questions(result: Message, label: str) -> dict[str, Any]:
    asked = result.get("inputRequests")
    questions = {} if asked is None else as_object(asked)
    if questions is None:
        raise unusable_answer(label, "an input request that is not an object of questions")
    return questions


async def _in_time(answers: Awaitable[dict[str, Any]], label: str, patience: float) -> dict[str, Any]:
    """Whoever answers has the call's whole time limit for it."""
    try:
        async with asyncio.timeout(patience):
            return await answers
    except TimeoutError:
        raise unavailable(f"{label} timed out: nobody answered its question within {patience:g} s") from None


async def _answers(questions: dict[str, Any], caller: Caller, label: str) -> dict[str, Any]:
    if caller.ask is None:
        raise ToolFailure(
            ToolErrorCode.NOT_IMPLEMENTED,
            f"{label} asks for input, which this way of calling cannot give: call it through an MCP client",
            retryable=False,
        )
    try:
        async with asyncio.TaskGroup() as group:
            tasks = {key: group.create_task(_answer(question, caller, label)) for key, question in questions.items()}
    except BaseExceptionGroup as group_error:
        # The first refusal is the outcome: nothing in this era carries an error to the server.
        raise group_error.exceptions[0] from None
    return {key: task.result() for key, task in tasks.items()}


async def _answer(question: Any, caller: Caller, label: str) -> Message:
    asked = as_object(question) or {}
    method = asked.get("method")
    if not isinstance(method, str):
        raise unusable_answer(label, "an input request without a method")
    params = as_object(asked.get("params")) or {}
    if method == "elicitation/create" and params.get("mode") == "url":
        # Before the modern era a question that sends the user elsewhere has an id.
        params = {"elicitationId": uuid4().hex, **params}
    try:
        return await caller.on_request(method, attribute(method, params, label), None)
    except RpcError as exc:
        raise RpcError(
            exc.code, f"{label} asked for input ({method}), and the client refused: {exc.message}", exc.data
        ) from None
