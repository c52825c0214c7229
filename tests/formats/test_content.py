"""Results of any kind: nothing a tool sends may spoil a conversation."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from anthropic.types import ToolResultBlockParam
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import CallToolResult, TextContent
from openai.types.chat import ChatCompletionToolMessageParam
from openai.types.responses.response_input_item_param import FunctionCallOutput

from formats.test_pictures import png
from formats.toolbox import PNG, fits
from pegboard.formats import anthropic, openai_chat, openai_responses, plain_json
from pegboard.formats.content import Media, Text, answer, fit_media
from pegboard.formats.pictures import PICTURES
from pegboard.result import ToolError, ToolErrorCode, ToolResult


def texts(result: Any, **how: Any) -> list[str]:
    return [part.text for part in answer(result, **how).parts if isinstance(part, Text)]


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"content": [{"type": "text", "text": "hi"}]}, ["hi"]),
        ({"content": []}, ["(no output)"]),
        ({"content": [{"type": "text", "text": " \n"}]}, ["(no output)"]),
        ({"content": [], "structuredContent": {"a": 10**30}}, ['{"a":1000000000000000000000000000000}']),
        ({"content": [{"type": "text", "text": "hi"}], "structuredContent": {"a": 1}}, ["hi"]),
        (
            {"content": [{"type": "resource_link", "uri": "a://b", "name": "b"}], "structuredContent": {"a": 1}},
            ["[resource: b, a://b]", '{"a":1}'],
        ),
        ({"content": [{"type": "text", "text": "half \ud800 a pair"}]}, ["half ? a pair"]),
        ({"content": [{"type": "hologram", "x": 1}]}, ['{"type":"hologram","x":1}']),
        ({"content": [{"type": "text", "text": 5}]}, ['{"type":"text","text":5}']),
        ({"content": ["bare", None]}, ['{"type":"?","value":"bare"}', '{"type":"?","value":null}']),
        ({"content": [{"type": "resource", "resource": {"uri": "a://b", "text": "t"}}]}, ["a://b\nt"]),
        ({"content": [{"type": "resource", "resource": {"uri": "a://b"}}]}, ['{"uri":"a://b"}']),
        ({"content": [{"type": "resource_link", "uri": "a://b", "name": "b"}]}, ["[resource: b, a://b]"]),
        (
            {"content": [{"type": "resource", "resource": {"uri": "a://b", "mimeType": "text/css", "blob": "YXs="}}]},
            ["a://b\na{"],
        ),
        ("plain", ["plain"]),
        (None, ["(no output)"]),
        ({"answer": 42}, ['{"answer":42}']),
        ([1, 2], ["[1,2]"]),
    ],
)
def test_everything_is_said_in_words(result: Any, said: list[str]) -> None:
    """Bare or inside of a `ToolResult`."""
    assert texts(result) == said
    assert texts(ToolResult[Any].ok(result)) == said


def test_an_object_of_the_sdk_is_a_result_too() -> None:
    """As a client of the MCP SDK has it."""
    found = answer(CallToolResult(content=[TextContent(type="text", text="hi")], is_error=True))
    assert (found.parts, found.is_error) == ((Text("hi"),), True)


def test_a_failure_is_its_error_object() -> None:
    """With code and whether to try again, since a model can make use of both."""
    found = answer(ToolResult[Any].failed(ToolError(ToolErrorCode.NOT_FOUND, "no such tool")))
    assert found.is_error
    assert (
        found.text == '{"success":false,"error":{"code":"TOOL_NOT_FOUND","message":"no such tool","retryable":false}}'
    )


def test_huge_text_is_cut_and_says_so() -> None:
    """Most of the beginning and some of the end; later texts are counted."""
    content = [{"type": "text", "text": "a" * 900 + "z" * 100}, {"type": "text", "text": "later"}]
    first, second = texts({"content": content}, limit=100)
    assert first == "a" * 80 + "\n[… 900 characters are left out …]\n" + "z" * 20
    assert second == "[5 more characters are left out]"


def test_a_long_error_is_cut_like_any_text() -> None:
    """A server may say anything there."""
    found = answer(ToolResult[Any].failed(ToolError(ToolErrorCode.EXECUTION_FAILED, "x" * 5000)), limit=100)
    assert found.is_error
    assert len(found.text) < 200


def test_a_picture_that_is_too_high_is_told_in_words() -> None:
    """Anthropic refuses one of more than 8,000 pixels on a side, and with it the rest of the conversation."""
    page = base64.b64encode(png(1200, 8001)).decode()
    content = {"content": [{"type": "image", "data": page, "mimeType": "image/png"}]}
    [block] = anthropic.tool_result("t1", content)["content"]
    assert block["type"] == "text"
    assert "1,200 by 8,001 pixels" in block["text"]
    assert openai_responses.function_output("c1", content)["output"][0]["type"] == "input_image"


def test_an_address_with_the_data_in_it_is_taken_for_the_data() -> None:
    """As some servers send pictures."""
    (part,) = answer({"content": [{"type": "image", "data": f"data:image/png;base64,{PNG}"}]}).parts
    assert isinstance(part, Media)
    assert part.data == PNG


@pytest.mark.parametrize("blob", ["", "aGVsbG8="])
def test_a_document_that_is_none_is_told_in_words(blob: str) -> None:
    """Whatever its server calls it."""
    document = {"uri": "a://b.pdf", "mimeType": "application/pdf", "blob": blob}
    [block] = anthropic.tool_result("t1", {"content": [{"type": "resource", "resource": document}]})["content"]
    assert block["type"] == "text"


@pytest.mark.parametrize(
    ("media", "seen"),
    [
        (Media(PNG, "image/png"), "image/png"),
        # It says one thing and is another: providers compare.
        (Media(PNG, "image/jpeg"), "image/png"),
        (Media(PNG, "image"), "image/png"),
        # One picture that cannot be read makes a provider refuse every later request, too.
        (Media("aGVsbG8=", "image/webp"), None),
        (Media("", "image/png"), None),
        (Media(PNG[:12], "image/png"), None),
        (Media("aGVsbG8=", "image"), None),
        (Media("aGVsbG8", "image/png"), None),
        (Media("no base64!", "image/png"), None),
        (Media(PNG, "image/svg+xml"), None),
        (Media("A" * 4000, "image/png"), None),
    ],
)
def test_pictures_are_shown_if_a_provider_takes_them(media: Media, seen: str | None) -> None:
    """Of the right kind and size, with data in order."""
    found = fit_media(media, PICTURES, 2000)
    assert (found.kind if isinstance(found, Media) else None) == seen


def test_line_breaks_in_base64_are_taken_out() -> None:
    """As MIME has them."""
    wrapped = base64.encodebytes(base64.b64decode(PNG) * 3).decode()
    (part,) = answer({"content": [{"type": "image", "data": wrapped, "mimeType": "image/JPG; x=y"}]}).parts
    assert isinstance(part, Media)
    assert "\n" not in part.data
    assert part.kind == "image/jpeg"


def test_plain_results() -> None:
    """Words for a person, data for a program."""
    result = {"content": [{"type": "text", "text": "hi"}], "structuredContent": {"a": 1}}
    assert plain_json.result("1", ToolResult[Any].ok(result)) == {
        "id": "1",
        "isError": False,
        "text": "hi",
        "data": {"a": 1},
    }
    picture = {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]}
    assert plain_json.result("1", picture)["text"].startswith("[image/png, ")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
blocks = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image", "audio", "resource", "resource_link", "?"])},
    optional={
        "text": st.text() | json_values,
        "data": st.sampled_from([PNG, "", "x", "AAAA"]) | json_values,
        "mimeType": st.sampled_from(["image/png", "application/pdf", "text/plain", ""]) | json_values,
        "resource": st.fixed_dictionaries(
            {}, optional={"uri": st.text() | json_values, "text": json_values, "blob": st.sampled_from([PNG, "!"]),
                          "mimeType": st.sampled_from(["image/gif", "text/html"]) | json_values},
        ),
        "uri": json_values,
        "name": json_values,
    },
)  # fmt: skip
results = st.one_of(
    json_values,
    st.fixed_dictionaries(
        {"content": st.lists(blocks | json_values, max_size=4)},
        optional={"isError": st.booleans() | json_values, "structuredContent": json_values},
    ),
)


@given(result=results)
def test_whatever_a_tool_answers_is_well_formed_for_everybody(result: Any) -> None:
    """The SDKs' types are met, no text is empty, and nothing is raised."""
    block = anthropic.tool_result("toolu_1", result)
    fits(block, ToolResultBlockParam)
    assert block["content"]
    assert all(each["text"].strip() for each in block["content"] if each["type"] == "text")
    output = openai_responses.function_output("call_1", result)
    fits(output, FunctionCallOutput)
    assert output["output"]
    fits(openai_chat.results_messages([("call_1", result)])[0], ChatCompletionToolMessageParam)
    assert plain_json.result("1", result)["text"].strip()
