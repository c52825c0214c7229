"""One way to ask the client something in either era: a request over the back channel after a handshake,
an `input_required` result answered by the client's retry in the modern era."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

from conformance.state import Context, is_modern

Answers: TypeAlias = dict[str, dict[str, Any]]
Answer: TypeAlias = types.CreateMessageResult | types.ListRootsResult | types.ElicitResult

_ANSWER_TYPES: Final[dict[str, type[Answer]]] = {
    "sampling/createMessage": types.CreateMessageResult,
    "roots/list": types.ListRootsResult,
    "elicitation/create": types.ElicitResult,
}
_CAPABILITIES: Final[dict[str, str]] = {
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
    "elicitation/create": "elicitation",
}


class InputNeeded(Exception):  # noqa: N818 - not a fault: it carries an interim result out of a handler
    def __init__(self, result: types.InputRequiredResult) -> None:
        super().__init__("the client has to answer first")
        self.result = result


@dataclass(slots=True)
class Call:
    """One `tools/call` or `prompts/get` as its handler sees it."""

    ctx: Context
    params: types.CallToolRequestParams | types.GetPromptRequestParams
    known: Answers = field(default_factory=Answers)

    @property
    def arguments(self) -> Mapping[str, Any]:
        return self.params.arguments or {}

    def supports(self, request: types.InputRequest) -> bool:
        capabilities = self.ctx.session.client_capabilities
        return getattr(capabilities, _CAPABILITIES[request.method], None) is not None

    async def ask(self, requests: Mapping[str, types.InputRequest], *, stateful: bool = False) -> Answers:
        """Return the client's answers by key, or leave the handler with `InputNeeded`.

        A handler may ask several times: answers of earlier rounds travel in the sealed `requestState`.
        `stateful` sends that state even in a first round, when there is nothing yet to remember.
        """
        require_capabilities([request for request in requests.values() if not self.supports(request)])
        if not is_modern(self.ctx):
            answers = await asyncio.gather(*(self._ask_now(request) for request in requests.values()))
            return dict(zip(requests, answers, strict=True))
        self.known |= json.loads(self.params.request_state or "{}")
        self.known |= self._answered_now(requests, stateful=stateful)
        missing = {key: request for key, request in requests.items() if key not in self.known}
        if missing:
            state = json.dumps(self.known) if stateful or self.known else None
            raise InputNeeded(types.InputRequiredResult(input_requests=missing, request_state=state))
        return {key: self.known[key] for key in requests}

    async def _ask_now(self, request: types.InputRequest) -> dict[str, Any]:
        # Bound to the call's own stream: the client may hold no standalone stream open.
        metadata = ServerMessageMetadata(related_request_id=self.ctx.request_id)
        answer = await self.ctx.session.send_request(request, _ANSWER_TYPES[request.method], metadata=metadata)
        return _plain(answer)

    def _answered_now(self, requests: Mapping[str, types.InputRequest], *, stateful: bool) -> Answers:
        if stateful and self.params.request_state is None:
            return {}
        answers = self.params.input_responses or {}
        return {
            key: _plain(answer)
            for key, answer in answers.items()
            if key in requests and isinstance(answer, _ANSWER_TYPES[requests[key].method])
        }


def _plain(answer: types.InputResponse) -> dict[str, Any]:
    return answer.model_dump(by_alias=True, mode="json", exclude_none=True)


def require_capabilities(refused: list[types.InputRequest]) -> None:
    if not refused:
        return
    names = sorted({_CAPABILITIES[request.method] for request in refused})
    raise MCPError(
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"The client did not declare: {', '.join(names)}",
        {"requiredCapabilities": {name: {} for name in names}},
    )


def elicitation(message: str, properties: dict[str, Any], required: list[str] | None = None) -> types.ElicitRequest:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
    }
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(prompt: str, max_tokens: int = 100) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)
    )


def roots() -> types.ListRootsRequest:
    return types.ListRootsRequest(params=types.RequestParams())
