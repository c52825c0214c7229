"""Claude's form, against the types of Anthropic's SDK."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import Message, MessageParam, ToolParam, ToolResultBlockParam

from formats.toolbox import PNG, fits, registered
from pegboard.formats import Conversions, NameBook, RequestedCall, anthropic
from pegboard.result import ToolError, ToolErrorCode, ToolResult

FAILED = ToolResult[Any].failed(ToolError(ToolErrorCode.UNAVAILABLE, "server git is gone", retryable=True))
FOUND = {
    "content": [{"type": "text", "text": "{}"}],
    "structuredContent": {
        "success": True,
        "data": {"tools": [{"name": "git__log"}, {"name": "git__push"}], "total": 2},
    },
}


def test_definitions_are_tools_of_the_sdk() -> None:
    """Name, description and schema, and no other key."""
    tools = [registered("log", "git", {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]})]
    (made,) = anthropic.definitions(tools, NameBook(tools), Conversions())
    fits(made, ToolParam)
    assert set(made) == {"name", "description", "input_schema"}
    assert made["name"] == "git__log"
    assert made["description"] == "Does log\n\nAt least one of these has to hold: (1) with a; (2) with b."
    assert made["input_schema"] == {"type": "object", "properties": {}}


def test_deferred_tools_are_marked_and_the_search_says_what_it_does() -> None:
    """All that is deferred has the mark, the rest has not."""
    tools = [registered("log", "git"), registered("push", "git"), registered("tool_find")]
    book = NameBook(tools)
    made = {each["name"]: each for each in anthropic.definitions(tools, book, Conversions(), deferred={"git__log"})}
    for each in made.values():
        fits(each, ToolParam)
    assert made["git__log"]["defer_loading"] is True
    assert "defer_loading" not in made["git__push"]
    assert "join your tools" in made["tool_find"]["description"]
    assert "join your tools" not in anthropic.definitions(tools, book, Conversions())[2]["description"]


def test_parameters_that_anthropic_would_refuse_by_name_are_kept_as_patterns() -> None:
    """One such name would make it refuse every tool of the request."""
    schema = {
        "type": "object",
        "properties": {"$filter": {"type": "string"}, "top": {"$ref": "#/properties/$filter"}, "x" * 65: {}},
        "required": ["$filter"],
        "additionalProperties": False,
    }
    tools = [registered("query", "odata", schema)]
    (made,) = anthropic.definitions(tools, NameBook(tools), Conversions())
    found = made["input_schema"]
    assert list(found["properties"]) == ["top"]
    assert found["patternProperties"]["^\\$filter$"] == {"type": "string"}
    assert found["properties"]["top"] == {"$ref": "#/$defs/_filter"}
    assert found["$defs"]["_filter"] == {"type": "string"}
    assert '"$filter"' in made["description"]


MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
    "content": [
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "toolu_1", "name": "git__log", "input": {"n": 1}},
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "tool_use", "id": "toolu_2", "name": "git__push", "input": {}},
    ],
}


@pytest.mark.parametrize(
    "reply",
    [Message.model_validate(MESSAGE), MESSAGE, MESSAGE["content"], Message.model_validate(MESSAGE).content],
    ids=["SDK object", "dict", "blocks", "SDK blocks"],
)
def test_calls_of_a_reply(reply: Any) -> None:
    """Each with its id; what Anthropic runs itself is none of ours."""
    calls = anthropic.parse_calls(reply)
    assert [(call.id, call.name, dict(call.arguments)) for call in calls] == [
        ("toolu_1", "git__log", {"n": 1}),
        ("toolu_2", "git__push", {}),
    ]
    assert [call.refusal for call in calls] == [None, None]


@pytest.mark.parametrize("reply", [None, "text", {}, {"content": "only text"}, [], {"content": None}])
def test_a_reply_without_calls(reply: Any) -> None:
    """Nothing to do."""
    assert anthropic.parse_calls(reply) == []


def test_input_that_is_no_object_is_an_error_result() -> None:
    """A stream that was cut off, for instance."""
    (call,) = anthropic.parse_calls([{"type": "tool_use", "id": "t", "name": "x", "input": [1]}])
    assert call.refusal is not None
    block = anthropic.tool_result(call, call.refusal)
    fits(block, ToolResultBlockParam)
    assert block["is_error"] is True
    assert "TOOL_INVALID_INPUT" in block["content"][0]["text"]


def test_results_of_parallel_calls_are_one_message() -> None:
    """In order, each paired with its call, and only failures marked."""
    calls = [RequestedCall(f"toolu_{number}", "git__log") for number in range(3)]
    results = [
        ToolResult[Any].ok({"content": [{"type": "text", "text": "fine"}]}),
        FAILED,
        {"isError": True, "content": []},
    ]
    message = anthropic.results_message(zip(calls, results, strict=True))
    fits(message, MessageParam)
    assert [block["tool_use_id"] for block in message["content"]] == ["toolu_0", "toolu_1", "toolu_2"]
    assert [block.get("is_error") for block in message["content"]] == [None, True, True]
    # An error without a word would be refused.
    assert message["content"][2]["content"] == [{"type": "text", "text": "(no output)"}]


def test_pictures_and_documents_are_shown() -> None:
    """Images in the four kinds Claude sees, PDF as a document, everything else in words."""
    pdf = {"uri": "file:///a/report.pdf", "mimeType": "application/pdf", "blob": "JVBERi0xLjQK"}
    content = [
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {"type": "resource", "resource": pdf},
        {"type": "image", "data": PNG, "mimeType": "image/tiff"},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
    ]
    block = anthropic.tool_result("toolu_1", {"content": content})
    fits(block, ToolResultBlockParam)
    assert [each["type"] for each in block["content"]] == ["image", "document", "text", "text"]
    assert block["content"][0]["source"] == {"type": "base64", "media_type": "image/png", "data": PNG}
    assert "audio/wav" in block["content"][3]["text"]


def test_found_tools_come_back_as_references() -> None:
    """Those that the request defines as deferred; their schemas are loaded by Claude itself."""
    book = NameBook([registered("log", "git"), registered("push", "git"), registered("tool_find")])
    call = RequestedCall("toolu_1", "tool_find", {"query": "log"})
    message = anthropic.results_message([(call, ToolResult[Any].ok(FOUND))], names=book, deferred={"git__log"})
    fits(message, MessageParam)
    (block,) = message["content"]
    assert block["content"] == [{"type": "tool_reference", "tool_name": "git__log"}]


def test_references_only_where_there_is_something_to_load() -> None:
    """Nothing found, a failed search, or tools that the model has already: the result as it is."""
    book = NameBook([registered("log", "git")])
    for result in (FOUND, FAILED, {"content": [{"type": "text", "text": "none"}]}):
        block = anthropic.tool_references("toolu_1", result, book, deferred=set[str]())
        fits(block, ToolResultBlockParam)
        assert block["content"][0]["type"] == "text"
