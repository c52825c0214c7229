"""The fixture's prompts, and completions for their arguments."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import mcp_types as types
from mcp.shared.exceptions import MCPError

from conformance.asking import Call, InputNeeded, elicitation
from conformance.content import embedded, image, text
from conformance.state import Context

PromptRun: TypeAlias = Callable[[Call], Awaitable[list[types.ContentBlock]]]

EXTRA_PROMPT: Final = "test_extra_prompt"
_COMPLETIONS: Final = ("paris", "park", "party", "test-one", "test-two")


@dataclass(frozen=True, slots=True)
class FixturePrompt:
    described: types.Prompt
    run: PromptRun


PROMPTS: Final[dict[str, FixturePrompt]] = {}


def prompt(name: str, description: str, **arguments: str) -> Callable[[PromptRun], PromptRun]:
    def register(run: PromptRun) -> PromptRun:
        declared = [
            types.PromptArgument(name=argument, description=meaning, required=True)
            for argument, meaning in arguments.items()
        ]
        PROMPTS[name] = FixturePrompt(types.Prompt(name=name, description=description, arguments=declared), run)
        return run

    return register


def _is_listed(ctx: Context, name: str) -> bool:
    return name != EXTRA_PROMPT or ctx.lifespan_context.extra_prompt


async def list_prompts(ctx: Context, _params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[entry.described for name, entry in PROMPTS.items() if _is_listed(ctx, name)]
    )


async def get_prompt(
    ctx: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    entry = PROMPTS.get(params.name)
    if entry is None or not _is_listed(ctx, params.name):
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
    try:
        blocks = await entry.run(Call(ctx, params))
    except InputNeeded as needed:
        return needed.result
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=block) for block in blocks])


async def complete(_ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    values = [value for value in _COMPLETIONS if value.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))


@prompt("test_simple_prompt", "One plain message.")
async def simple(_call: Call) -> list[types.ContentBlock]:
    return [text("This is a simple prompt for testing.")]


@prompt("test_prompt_with_arguments", "Repeats its arguments.", arg1="First test argument", arg2="Second test argument")
async def with_arguments(call: Call) -> list[types.ContentBlock]:
    first, second = call.arguments.get("arg1", ""), call.arguments.get("arg2", "")
    return [text(f"Prompt with arguments: arg1='{first}', arg2='{second}'")]


@prompt("test_prompt_with_embedded_resource", "Embeds a resource.", resourceUri="URI of the resource to embed")
async def with_resource(call: Call) -> list[types.ContentBlock]:
    uri = str(call.arguments.get("resourceUri", "test://example-resource"))
    resource = embedded(uri, "text/plain", "Embedded resource content for testing.")
    return [resource, text("Please process the embedded resource above.")]


@prompt("test_prompt_with_image", "Shows an image.")
async def with_image(_call: Call) -> list[types.ContentBlock]:
    return [image(), text("Please analyze the image above.")]


@prompt("test_input_required_result_prompt", "Asks for its context first.")
async def with_context(call: Call) -> list[types.ContentBlock]:
    question = elicitation("What context should the prompt use?", {"context": {"type": "string"}})
    answer = (await call.ask({"user_context": question}))["user_context"]
    return [text(f"Context: {answer.get('content', {}).get('context', answer['action'])}")]


@prompt(EXTRA_PROMPT, "Comes and goes with test_trigger_prompt_change.")
async def extra(_call: Call) -> list[types.ContentBlock]:
    return [text("The extra prompt is here")]
