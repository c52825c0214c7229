"""The tools that need something from the client: a sample, a form, its roots, or several of these."""

from typing import Any, Final

import mcp_types as types

from conformance.asking import Call, elicitation, require_capabilities, roots, sampling
from conformance.content import tool_text
from conformance.toolbox import ToolBox

TOOLBOX: Final = ToolBox()

_STRING: Final[dict[str, Any]] = {"type": "string"}
_BOOLEAN: Final[dict[str, Any]] = {"type": "boolean"}

_DEFAULTS_FORM: Final[dict[str, Any]] = {
    "name": {"type": "string", "description": "User name", "default": "John Doe"},
    "age": {"type": "integer", "description": "User age", "default": 30},
    "score": {"type": "number", "description": "User score", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "description": "Verification status", "default": True},
}


def _titled(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"const": value, "title": title} for value, title in pairs]


_ENUMS_FORM: Final[dict[str, Any]] = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {
        "type": "string",
        "oneOf": _titled(("value1", "First Option"), ("value2", "Second Option"), ("value3", "Third Option")),
    },
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {
        "type": "array",
        "items": {
            "anyOf": _titled(("value1", "First Choice"), ("value2", "Second Choice"), ("value3", "Third Choice"))
        },
    },
}


def _one_string(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: _STRING}, "required": [name]}


def _field(answer: dict[str, Any], name: str) -> str:
    """What the form says, or how the user left it."""
    return str(answer.get("content", {}).get(name, answer["action"]))


def _sampled(answer: dict[str, Any]) -> str:
    return str(answer["content"].get("text", answer["content"]))


@TOOLBOX.tool("test_sampling", "Asks the client's model to answer a prompt.", _one_string("prompt"))
async def sample(call: Call) -> types.CallToolResult:
    answers = await call.ask({"sample": sampling(str(call.arguments.get("prompt", "")))})
    return tool_text(f"LLM response: {_sampled(answers['sample'])}")


async def _filled_form(call: Call, opening: str, form: types.ElicitRequest) -> types.CallToolResult:
    answer = (await call.ask({"form": form}))["form"]
    return tool_text(f"{opening}: action={answer['action']}, content={answer.get('content', {})}")


@TOOLBOX.tool("test_elicitation", "Asks the user for a name and an address.", _one_string("message"))
async def elicit(call: Call) -> types.CallToolResult:
    fields = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    return await _filled_form(call, "User response", elicitation(str(call.arguments.get("message", "")), fields))


@TOOLBOX.tool("test_elicitation_sep1034_defaults", "Asks with a default for every primitive type.")
async def elicit_defaults(call: Call) -> types.CallToolResult:
    form = elicitation("Please review the defaults", _DEFAULTS_FORM, required=[])
    return await _filled_form(call, "Elicitation completed", form)


@TOOLBOX.tool("test_elicitation_sep1330_enums", "Asks with every form of an enumeration.")
async def elicit_enums(call: Call) -> types.CallToolResult:
    form = elicitation("Please choose from the options", _ENUMS_FORM, required=[])
    return await _filled_form(call, "Elicitation completed", form)


@TOOLBOX.tool("test_streaming_elicitation", "Asks the user to confirm, which a modern client must see as a result.")
async def streaming_elicitation(call: Call) -> types.CallToolResult:
    answers = await call.ask({"confirm": elicitation("Please confirm", {"ok": _BOOLEAN})})
    return tool_text(f"Confirmed: {_field(answers['confirm'], 'ok')}")


@TOOLBOX.tool("test_missing_capability", "Refuses a client that cannot sample.")
async def missing_capability(call: Call) -> types.CallToolResult:
    request = sampling("unused")
    require_capabilities([] if call.supports(request) else [request])
    return tool_text("The client declared sampling")


@TOOLBOX.tool("test_input_required_result_elicitation", "Asks for a name in one round.")
async def ask_name(call: Call) -> types.CallToolResult:
    answers = await call.ask({"user_name": elicitation("What is your name?", {"name": _STRING})})
    return tool_text(f"Hello, {_field(answers['user_name'], 'name')}!")


@TOOLBOX.tool("test_input_required_result_sampling", "Asks the client's model in one round.")
async def ask_model(call: Call) -> types.CallToolResult:
    answers = await call.ask({"capital_question": sampling("What is the capital of France?")})
    return tool_text(_sampled(answers["capital_question"]))


@TOOLBOX.tool("test_input_required_result_list_roots", "Asks for the client's roots in one round.")
async def ask_roots(call: Call) -> types.CallToolResult:
    answers = await call.ask({"client_roots": roots()})
    return tool_text(f"Roots: {[root['uri'] for root in answers['client_roots']['roots']]}")


@TOOLBOX.tool("test_input_required_result_request_state", "Asks in one round that has to bring its state back.")
async def ask_with_state(call: Call) -> types.CallToolResult:
    await call.ask({"confirm": elicitation("Please confirm", {"ok": _BOOLEAN})}, stateful=True)
    return tool_text("state-ok")


@TOOLBOX.tool("test_input_required_result_tampered_state", "Refuses a state that it did not seal itself.")
async def ask_with_sealed_state(call: Call) -> types.CallToolResult:
    await call.ask({"confirm": elicitation("Please confirm", {"ok": _BOOLEAN})}, stateful=True)
    return tool_text("The state came back untouched")


@TOOLBOX.tool("test_input_required_result_multiple_inputs", "Asks for a name, a sample and the roots in one round.")
async def ask_everything(call: Call) -> types.CallToolResult:
    requests: dict[str, types.InputRequest] = {
        "user_name": elicitation("What is your name?", {"name": _STRING}),
        "greeting": sampling("Generate a greeting", max_tokens=50),
        "client_roots": roots(),
    }
    answers = await call.ask(requests, stateful=True)
    name, greeting = _field(answers["user_name"], "name"), _sampled(answers["greeting"])
    return tool_text(f"{greeting} {name} has {len(answers['client_roots']['roots'])} root(s).")


@TOOLBOX.tool("test_input_required_result_multi_round", "Asks for a name, then for a colour.")
async def ask_twice(call: Call) -> types.CallToolResult:
    first = await call.ask({"step1": elicitation("Step 1: What is your name?", {"name": _STRING})}, stateful=True)
    colour = elicitation("Step 2: What is your favorite color?", {"color": _STRING})
    second = await call.ask({"step2": colour}, stateful=True)
    return tool_text(f"{_field(first['step1'], 'name')} likes {_field(second['step2'], 'color')}.")


@TOOLBOX.tool("test_input_required_result_capabilities", "Asks only for what the client declared that it can do.")
async def ask_what_is_declared(call: Call) -> types.CallToolResult:
    requests: dict[str, types.InputRequest] = {
        "name": elicitation("What is your name?", {"name": _STRING}),
        "sample": sampling("Say hello"),
        "client_roots": roots(),
    }
    answers = await call.ask({key: request for key, request in requests.items() if call.supports(request)})
    return tool_text(f"Answered: {sorted(answers)}")
