"""OpenAI's two forms, against the types of its SDK."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam, ChatCompletionToolParam
from openai.types.responses import (
    FunctionToolParam,
    NamespaceToolParam,
    Response,
    ResponseToolSearchOutputItemParamParam,
    ToolSearchToolParam,
)
from openai.types.responses.response_input_item_param import FunctionCallOutput

from formats.toolbox import PNG, fits, registered
from pegboard.formats import Conversions, NameBook, RequestedCall, openai_chat, openai_responses
from pegboard.result import ToolError, ToolErrorCode, ToolResult

FAILED = ToolResult[Any].failed(ToolError(ToolErrorCode.UNAVAILABLE, "server git is gone", retryable=True))
CLOSED = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
TOOLS = [
    registered("log", "git", {"type": "object", "properties": {"n": {"type": "integer"}, "all": {"type": "array"}}}),
    registered("push", "git", CLOSED),
    registered("search", "docs"),
    registered("tool_find", None, CLOSED),
]
BOOK = NameBook(TOOLS)
FOUND = {"structuredContent": {"data": {"tools": [{"name": "git__push"}, {"name": "docs__search"}, {"name": "gone"}]}}}


def test_functions_for_responses() -> None:
    """Strict where the schema is; where it is not, that is said too, or the API would try by itself."""
    made = openai_responses.definitions(TOOLS, BOOK, Conversions(), deferred={"docs__search"})
    for each in made:
        fits(each, FunctionToolParam)
    assert [each["name"] for each in made] == ["git__log", "git__push", "docs__search", "tool_find"]
    assert [each["strict"] for each in made] == [False, True, False, True]
    assert [each.get("defer_loading") for each in made] == [None, None, True, None]
    # An array that says nothing of its items would be refused.
    assert made[0]["parameters"]["properties"]["all"] == {"type": "array", "items": {}}


def test_functions_for_chat_completions() -> None:
    """The same, one level deeper."""
    made = openai_chat.definitions(TOOLS, BOOK, Conversions())
    for each in made:
        fits(each, ChatCompletionToolParam)
    assert made[1] == {
        "type": "function",
        "function": {"name": "git__push", "description": "Does push", "parameters": CLOSED, "strict": True},
    }


def test_a_namespace_a_server() -> None:
    """Tools under the names that their servers give them; ours beside them, and never deferred."""
    function, *groups = openai_responses.namespaces(TOOLS, BOOK, Conversions(), about={"git": "Repositories"})
    fits(function, FunctionToolParam)
    assert "defer_loading" not in function
    for each in groups:
        fits(each, NamespaceToolParam)
    assert [(each["name"], each["description"]) for each in groups] == [
        ("git", "Repositories"),
        ("docs", "Tools of docs"),
    ]
    assert [tool["name"] for tool in groups[0]["tools"]] == ["log", "push"]
    assert all(tool["defer_loading"] for tool in groups[0]["tools"])
    (_, *eager) = openai_responses.namespaces(TOOLS, BOOK, Conversions(), deferred=False)
    assert "defer_loading" not in eager[0]["tools"][0]


def test_a_tool_search_that_we_run() -> None:
    """With the parameters of `tool_find`."""
    made = openai_responses.tool_search(TOOLS[3], Conversions())
    fits(made, ToolSearchToolParam)
    assert made["execution"] == "client"
    assert made["parameters"] == CLOSED


OUTPUT = [
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {
        "type": "tool_search_call", "id": "ts_1", "call_id": "call_0", "execution": "client", "status": "completed",
        "arguments": {"query": "push"},
    },
    {
        "type": "tool_search_call", "id": "ts_2", "call_id": "call_9", "execution": "server", "status": "completed",
        "arguments": {"query": "push"},
    },
    {"type": "function_call", "call_id": "call_1", "name": "push", "namespace": "git", "arguments": '{"n": 1}'},
    {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "git__log", "arguments": ""},
    {"type": "function_call", "id": "fc_3", "call_id": "call_3", "name": "git__log", "arguments": '{"n": '},
]  # fmt: skip
RESPONSE = {
    "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt", "output": OUTPUT,
    "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None, "incomplete_details": None,
    "instructions": None, "metadata": None, "temperature": None, "top_p": None,
}  # fmt: skip


@pytest.mark.parametrize(
    "reply", [Response.model_validate(RESPONSE), RESPONSE, OUTPUT], ids=["SDK object", "dict", "items"]
)
def test_calls_of_a_response(reply: Any) -> None:
    """Calls, and searches that the client has to run; arguments that are no JSON are the call's problem."""
    search, push, log, broken = openai_responses.parse_calls(reply)
    assert (search.id, search.name, search.is_search, dict(search.arguments)) == (
        "call_0", "tool_find", True, {"query": "push"},
    )  # fmt: skip
    assert (push.id, push.name, push.namespace, dict(push.arguments)) == ("call_1", "push", "git", {"n": 1})
    assert BOOK.tool(push.name, push.namespace) == "git__push"
    assert (log.id, log.namespace, dict(log.arguments), log.problem) == ("call_2", None, {}, None)
    assert broken.problem is not None
    assert broken.problem.code is ToolErrorCode.INVALID_INPUT


def test_results_for_responses() -> None:
    """Text as text, pictures and PDF as such, failures in words: there is no mark for them."""
    pdf = {"uri": "file:///a/report.pdf", "mimeType": "application/pdf", "blob": "JVBERi0xLjQK"}
    picture = {"type": "image", "data": PNG, "mimeType": "image/png"}
    cases: list[tuple[Any, Any]] = [
        ({"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}, "one\n\ntwo"),
        ({"content": []}, "(no output)"),
        ({"isError": True, "content": [{"type": "text", "text": "no such file"}]}, "Error:\n\nno such file"),
        (
            {"content": [picture, {"type": "resource", "resource": pdf}]},
            [
                {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
                {
                    "type": "input_file",
                    "filename": "report.pdf",
                    "file_data": "data:application/pdf;base64,JVBERi0xLjQK",
                },
            ],
        ),
    ]
    for result, output in cases:
        made = openai_responses.function_output("call_1", ToolResult[Any].ok(result))
        fits(made, FunctionCallOutput)
        assert made["output"] == output
    assert '"code":"TOOL_UNAVAILABLE"' in openai_responses.function_output("call_1", FAILED)["output"]


def test_found_tools_are_loaded_in_the_namespaces_of_their_servers() -> None:
    """Only those that are there; and each result belongs to its call."""
    by_name = {tool.name: tool for tool in TOOLS}
    search, call = RequestedCall("call_0", "tool_find", is_search=True), RequestedCall("call_1", "git__log")
    first, second = openai_responses.outputs(
        [(search, ToolResult[Any].ok(FOUND)), (call, FAILED)], by_name, BOOK, Conversions()
    )
    fits(first, ResponseToolSearchOutputItemParamParam)
    fits(second, FunctionCallOutput)
    assert (first["call_id"], second["call_id"]) == ("call_0", "call_1")
    assert [(group["name"], [tool["name"] for tool in group["tools"]]) for group in first["tools"]] == [
        ("git", ["push"]),
        ("docs", ["search"]),
    ]
    (empty,) = openai_responses.outputs([(search, FAILED)], by_name, BOOK, Conversions())
    fits(empty, ResponseToolSearchOutputItemParamParam)
    assert empty["tools"] == []


COMPLETION: dict[str, Any] = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "gpt",
    "choices": [{
        "index": 0, "finish_reason": "tool_calls", "logprobs": None,
        "message": {"role": "assistant", "content": None, "refusal": None, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "git__log", "arguments": '{"n": 2}'}},
            {"id": "call_2", "type": "function", "function": {"name": "git__log", "arguments": "[]"}},
            {"id": "call_3", "type": "custom", "custom": {"name": "own", "input": "x"}},
        ]},
    }],
}  # fmt: skip


@pytest.mark.parametrize(
    "reply",
    [
        ChatCompletion.model_validate(COMPLETION),
        ChatCompletion.model_validate(COMPLETION).choices[0].message,
        COMPLETION,
        COMPLETION["choices"][0],
        COMPLETION["choices"][0]["message"]["tool_calls"],
    ],
    ids=["SDK object", "SDK message", "dict", "choice", "calls"],
)
def test_calls_of_a_completion(reply: Any) -> None:
    """Function calls; a custom tool is the caller's own."""
    first, second = openai_chat.parse_calls(reply)
    assert (first.id, first.name, dict(first.arguments)) == ("call_1", "git__log", {"n": 2})
    assert second.problem is not None


@pytest.mark.parametrize("reply", [None, {}, {"choices": []}, {"choices": [{"message": {"content": "hi"}}]}])
def test_a_completion_without_calls(reply: Any) -> None:
    """Nothing to do."""
    assert openai_chat.parse_calls(reply) == []


def test_results_for_chat_completions() -> None:
    """A message a call, and the pictures of all of them behind the last."""
    picture = {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]}
    answered = [(RequestedCall("call_1", "a"), picture), ("call_2", FAILED)]
    made = openai_chat.results_messages(answered)
    for each in made:
        fits(each, ChatCompletionMessageParam)
    assert [each["role"] for each in made] == ["tool", "tool", "user"]
    assert [each.get("tool_call_id") for each in made] == ["call_1", "call_2", None]
    assert "call_1" in made[2]["content"][0]["text"]
    blind = openai_chat.results_messages(answered, pictures=False)
    assert [each["role"] for each in blind] == ["tool", "tool"]
    assert "image/png" in blind[0]["content"]


def test_a_long_description_fits_chat_completions() -> None:
    """More than 1,024 characters make it refuse the whole request; all of them stand with the parameters."""
    long = "What this tool does. " * 100
    short = registered("short", "git", description="x" * 1024)
    tools = [registered("long", "git", {"type": "object", "description": "Arguments"}, description=long), short]
    book, conversions = NameBook(tools), Conversions()
    first, second = (each["function"] for each in openai_chat.definitions(tools, book, conversions))
    assert len(first["description"]) == 1024
    assert first["description"].startswith("What this tool does. ")
    assert "see the parameters" in first["description"]
    assert first["parameters"]["description"] == f"{long}\n\nArguments"
    assert second["description"] == "x" * 1024
    assert "description" not in second["parameters"]
    assert openai_responses.definitions(tools, book, conversions)[0]["description"] == long


def test_no_pattern_that_openai_refuses_is_sent() -> None:
    """In either of its forms; Anthropic takes them."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?!x)"}}}
    tools = [registered("t", "git", schema)]
    book, conversions = NameBook(tools), Conversions()
    [function] = openai_responses.definitions(tools, book, conversions)
    [chat] = openai_chat.definitions(tools, book, conversions)
    assert "pattern" not in function["parameters"]["properties"]["a"]
    assert chat["function"]["parameters"] == function["parameters"]


@pytest.mark.parametrize("nothing", ["", " ", "null", " null ", None])
def test_no_arguments_at_all(nothing: str | None) -> None:
    """However a model writes that."""
    call = {"type": "function_call", "call_id": "c", "name": "git__log", "arguments": nothing}
    [found] = openai_responses.parse_calls([call])
    assert (found.arguments, found.problem) == ({}, None)
