"""Conversion happens once, and the forms as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from formats.toolbox import fits, registered
from pegboard.catalog.registry import ToolRegistry
from pegboard.formats import (
    FORMATS,
    Conversions,
    Format,
    NameBook,
    anthropic,
    definitions,
    openai_responses,
    plain_json,
)
from pegboard.formats import conversions as module
from pegboard.tool import RegisteredTool

TOOL = {"name": "log", "description": "d", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}


def from_registry() -> list[RegisteredTool]:
    registry = ToolRegistry(max_name_length=64)
    registry.register_mcp_tools("git", [TOOL]).unwrap()
    return registry.all()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was converted, in order."""
    seen: list[object] = []
    real = module.object_schema
    monkeypatch.setattr(module, "object_schema", lambda given, **how: (seen.append(given), real(given, **how))[1])
    return seen


@pytest.mark.parametrize("form", ["anthropic", "openai", "openai-chat"])
def test_a_tool_is_converted_once(form: Any, counted: list[object]) -> None:
    """Also when its server was asked again and said the same."""
    conversions = Conversions()
    for _ in range(3):
        tools = from_registry()
        definitions(form, tools, NameBook(tools), conversions)
    assert len(counted) == 1


def test_a_changed_tool_is_converted_again(counted: list[object]) -> None:
    """By what it says, not by its name; with or without a digest."""
    conversions = Conversions()
    one, other = registered("log"), registered("log", None, {"type": "object", "properties": {"a": {}}})
    assert conversions.of(one, anthropic.RULES).schema != conversions.of(other, anthropic.RULES).schema
    (found,) = from_registry()
    changed = replace(found, definition={**found.definition, "description": "new"}, digest=found.digest + 1)
    assert conversions.of(found, anthropic.RULES).description != conversions.of(changed, anthropic.RULES).description
    assert len(counted) == 4


def test_what_is_kept_is_bounded(counted: list[object]) -> None:
    """A long-running loop over changing tools does not grow."""
    conversions = Conversions(most=2)
    for number in range(10):
        conversions.of(registered(f"t{number}"), openai_responses.RULES)
    assert len(conversions._kept) <= 2
    assert len(counted) == 10


def test_changing_a_definition_does_not_change_the_next() -> None:
    """A loop may mark the last tool for the prompt cache."""
    conversions, tools = Conversions(), from_registry()
    first = definitions("anthropic", tools, NameBook(tools), conversions)
    first[-1]["cache_control"] = {"type": "ephemeral"}
    assert "cache_control" not in definitions("anthropic", tools, NameBook(tools), conversions)[-1]


def test_every_format_and_no_other() -> None:
    """A wrong name is a programming error."""
    tools = from_registry()
    assert get_args(Format) == FORMATS
    for form in FORMATS:
        assert len(definitions(form, tools, NameBook(tools), Conversions())) == 1
    with pytest.raises(ValueError, match="anthropic, openai, openai-chat, json"):
        definitions("xml", tools, NameBook(tools), Conversions())  # pyright: ignore[reportArgumentType]


def test_plain_json_is_what_the_server_said() -> None:
    """The schema as it came, and what a framework may want to know."""
    schema = {"$schema": "x", "type": "object", "anyOf": [{"required": ["a"]}]}
    tool = registered("log", "git", schema, annotations={"readOnlyHint": True})
    assert plain_json.definitions([tool], NameBook([tool])) == [
        {
            "name": "git__log",
            "description": "Does log",
            "inputSchema": schema,
            "server": "git",
            "annotations": {"readOnlyHint": True},
        }
    ]


@pytest.mark.parametrize(
    ("value", "count"),
    [({"name": "a", "arguments": "{}"}, 1), ([{"id": "1", "name": "a"}, {"name": "b"}], 2), (None, 0)],
)
def test_plain_calls(value: Any, count: int) -> None:
    """One, several, none."""
    assert len(plain_json.parse_calls(value)) == count


def test_the_check_against_the_sdk_sees_unknown_keys() -> None:
    """Or all the other tests would prove little."""
    from anthropic.types import MessageParam, ToolParam
    from openai.types.responses import NamespaceToolParam

    good: dict[str, Any] = {"name": "a", "input_schema": {"type": "object"}}
    fits(good, ToolParam)
    function = {"type": "function", "name": "a", "parametres": {}}
    for bad, kind in (
        ({**good, "inputSchema": {}}, ToolParam),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "isError": True}]}, MessageParam),
        ({"type": "namespace", "name": "n", "description": "d", "tools": [function]}, NamespaceToolParam),
    ):
        with pytest.raises((AssertionError, ValueError)):
            fits(bad, kind)
