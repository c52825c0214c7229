"""Tools for model providers: definitions, the calls in a reply, and results back.

Pure functions: nothing here talks to anybody, and no provider's SDK is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, get_args

from pegboard.formats import anthropic, openai_chat, openai_responses, plain_json
from pegboard.formats.calls import RequestedCall
from pegboard.formats.conversions import Conversions
from pegboard.formats.namebook import NameBook
from pegboard.tool import RegisteredTool

__all__ = [
    "FORMATS", "Conversions", "Format", "NameBook", "RequestedCall", "anthropic", "definitions",
    "openai_chat", "openai_responses", "plain_json",
]  # fmt: skip

Format = Literal["anthropic", "openai", "openai-chat", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)


_MAKERS: dict[str, Callable[[Iterable[RegisteredTool], NameBook, Conversions], list[dict[str, Any]]]] = {
    "anthropic": anthropic.definitions,
    "openai": openai_responses.definitions,
    "openai-chat": openai_chat.definitions,
    "json": lambda tools, names, _: plain_json.definitions(tools, names),
}


def definitions(
    form: Format, tools: Iterable[RegisteredTool], names: NameBook, conversions: Conversions
) -> list[dict[str, Any]]:
    """Tools in one of the forms, in their order."""
    if (make := _MAKERS.get(form)) is None:
        raise ValueError(f"there is no format {form!r}; there are {', '.join(FORMATS)}")
    return make(tools, names, conversions)
