"""Tools for model providers: definitions, the calls in a reply, and results back.

Nothing here talks to anybody, and no provider's SDK is needed. A format is one file with a `ProviderFormat`, named in
the list below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pegboard.formats import anthropic, openai_chat, openai_responses, plain_json
from pegboard.formats.anthropic import AnthropicFormat
from pegboard.formats.calls import RequestedCall
from pegboard.formats.conversions import Conversions
from pegboard.formats.format import ProviderFormat
from pegboard.formats.namebook import NameBook
from pegboard.formats.openai_chat import OpenAiChatFormat
from pegboard.formats.openai_responses import OpenAiFormat
from pegboard.formats.plain_json import PlainJsonFormat
from pegboard.tool import RegisteredTool

__all__ = [
    "FORMATS", "Conversions", "Format", "NameBook", "ProviderFormat", "RequestedCall", "anthropic", "definitions",
    "format_problem", "make_formats", "openai_chat", "openai_responses", "plain_json",
]  # fmt: skip

Format = Literal["anthropic", "openai", "openai-chat", "json"]
_CLASSES: Mapping[Format, type[ProviderFormat]] = {
    "anthropic": AnthropicFormat,
    "openai": OpenAiFormat,
    "openai-chat": OpenAiChatFormat,
    "json": PlainJsonFormat,
}
FORMATS: tuple[Format, ...] = tuple(_CLASSES)


def make_formats() -> dict[Format, ProviderFormat]:
    """One object of each format, for one board."""
    return {name: make() for name, make in _CLASSES.items()}


def format_problem(form: object) -> str | None:
    """Why there is no format of this name; `None` if there is one."""
    return None if form in FORMATS else f"there is no format {form!r}; there are {', '.join(FORMATS)}"


def definitions(
    form: Format, tools: Iterable[RegisteredTool], names: NameBook, conversions: Conversions
) -> list[dict[str, Any]]:
    """Tools in one of the forms, in their order."""
    if problem := format_problem(form):
        raise ValueError(problem)
    return _CLASSES[form]().definitions(tools, names, conversions)
