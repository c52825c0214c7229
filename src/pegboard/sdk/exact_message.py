"""Messages of the SDK from and to JSON: its own parser knows neither a number beyond a float nor half of a surrogate
pair. It is given an approximation, and what the message really says stands beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcp_types import INTERNAL_ERROR, JSONRPCError, JSONRPCMessage, JSONRPCResponse, jsonrpc_message_adapter
from pydantic import BaseModel, ValidationError

from pegboard import exactjson
from pegboard.log import logger
from pegboard.protocol.message import NotAMessage

_UNWRITABLE = {"code": INTERNAL_ERROR, "message": "the message cannot be written as JSON"}
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class ExactMessage:
    """A message as the SDK reads it, and its exact value where that is another. An answer is exact already: nobody but
    whoever asked looks at it."""

    message: JSONRPCMessage
    exact: dict[str, Any] | None = None

    @classmethod
    def read(cls, text: bytes) -> ExactMessage:
        """The message that a text is; `NotJson` or `NotAMessage`."""
        readable, value = exactjson.approximation(text)
        try:
            message = jsonrpc_message_adapter.validate_json(readable, by_name=False)
        except ValidationError:
            raise NotAMessage from None
        exact = exactjson.as_object(value)
        return cls(message if exact is None else _with_exact_answer(message, exact), exact)


def write_message(message: JSONRPCMessage) -> bytes:
    """The JSON text of a message. Of one that cannot be written it is an error, for the request that it answers: raised
    from here, the exception would end whoever writes this client's other messages."""
    serializer = message.__pydantic_serializer__
    try:
        return exactjson.write_exactly(lambda: serializer.to_json(message, by_alias=True, exclude_unset=True))
    except Exception:
        return _write_by_hand(message)


def _write_by_hand(message: JSONRPCMessage) -> bytes:
    """Write a message with half of a surrogate pair in a plain text, which Pydantic does not write."""
    try:
        return exactjson.dump(exactjson.exact(_members(message)))
    except Exception as exc:
        logger().error("client.message.unwritable", error=f"{type(exc).__name__}: {exc}"[:_SHOWN])
        request_id = message.id if isinstance(message, (JSONRPCResponse, JSONRPCError)) else None
        return exactjson.dump({"jsonrpc": "2.0", "id": request_id, "error": _UNWRITABLE})


def _members(model: BaseModel) -> dict[str, Any]:
    """The members of a message as they are. Its own dump would have approximations of odd values."""
    return {
        name: _members(value) if isinstance(value, BaseModel) else value
        for name, value in model
        if name in model.model_fields_set
    }


def _with_exact_answer(message: JSONRPCMessage, exact: dict[str, Any]) -> JSONRPCMessage:
    if isinstance(message, JSONRPCResponse):
        return message.model_copy(update={"result": exact["result"]})
    if isinstance(message, JSONRPCError):
        error = exactjson.as_object(exact["error"]) or {}
        said = {"message": str(error["message"]), "data": error.get("data")}
        return message.model_copy(update={"error": message.error.model_copy(update=said)})
    return message
