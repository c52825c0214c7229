"""Attribution: a question says which server asks, since its client sees Pegboard alone."""

from __future__ import annotations

from typing import Any

from pegboard.exactjson import SurrogateText, as_object
from pegboard.protocol.members import without_look_alikes
from pegboard.servers.message import Message, Params

# Where a client finds the name of the server that asks.
SERVER_KEY = "pegboard/server"
_FORM = "elicitation/create"


def attribute(method: str, params: Params, server: str) -> dict[str, Any]:
    """A question with the name of the server that asks; whatever the server says of itself comes after it."""
    written = ("_meta", "message") if method == _FORM else ("_meta",)
    meta = without_look_alikes(as_object(params.get("_meta")) or {}, SERVER_KEY)
    # A client that reads `Message` as `message` must not miss who asks.
    named = {**without_look_alikes(params, *written), "_meta": {**meta, SERVER_KEY: server}}
    if method == _FORM:
        message = params.get("message")
        words = f"[{server}] {message}" if isinstance(message, str) else f"[{server}]"
        # One with half of a surrogate pair stays one that is written as its escape.
        named["message"] = SurrogateText(words) if isinstance(message, SurrogateText) else words
    return named


def attribute_result(result: Message, server: str) -> Message:
    """The same for the questions in a result that asks for input."""
    questions = as_object(result.get("inputRequests"))
    if not questions:
        return result
    return {**result, "inputRequests": {key: _attribute_one(each, server) for key, each in questions.items()}}


def _attribute_one(question: Any, server: str) -> Any:
    asked = as_object(question)
    if asked is None:
        return question
    method, params = asked.get("method"), as_object(asked.get("params")) or {}
    return {**asked, "params": attribute(method if isinstance(method, str) else "", params, server)}
