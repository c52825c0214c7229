"""Messages of the SDK from and to JSON: its own parser knows neither a number beyond a float nor half of a surrogate
pair. It is given an approximation, and what the message really says stands beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCResponse, jsonrpc_message_adapter
from pydantic import ValidationError

from pegboard import exactjson
from pegboard.protocol.message import NotAMessage


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
    """The JSON text of a message."""
    serializer = message.__pydantic_serializer__
    return exactjson.write_exactly(lambda: serializer.to_json(message, by_alias=True, exclude_unset=True))


def _with_exact_answer(message: JSONRPCMessage, exact: dict[str, Any]) -> JSONRPCMessage:
    if isinstance(message, JSONRPCResponse):
        return message.model_copy(update={"result": exact["result"]})
    if isinstance(message, JSONRPCError):
        data = (exactjson.as_object(exact["error"]) or {}).get("data")
        return message.model_copy(update={"error": message.error.model_copy(update={"data": data})})
    return message
