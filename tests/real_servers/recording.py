"""A client that writes down every message it receives, and the comparison of two such recordings."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import difflib
import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pegboard.protocol.codes import METHOD_NOT_FOUND
from pegboard.result import ToolFailure
from pegboard.servers.errors import RpcError
from pegboard.servers.jsonrpc import JsonRpcPeer
from pegboard.servers.message import Params
from pegboard.servers.transports.transport import Transport

VERSION = "2025-11-25"
# How long a message that must come is waited for; one that never comes is missing in the recording.
PATIENCE = 2.0
# An answer that came a moment too often would come by then.
SILENCE = 0.2

Answer = dict[str, Any] | RpcError
Answers = Mapping[str, Answer]


@dataclass
class Step:
    """One request, and everything that was received from its sending to the next one."""

    title: str
    answer: dict[str, Any] = field(default_factory=dict[str, Any])
    progress: list[Any] = field(default_factory=list[Any])
    questions: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    notifications: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    in_vain: list[str] = field(default_factory=list[str])


class RecordingClient:
    """A client of the handshake era that can do all that a server may ask of it."""

    def __init__(self, wire: Transport, capabilities: Mapping[str, Any], prefix: str) -> None:
        self.link = JsonRpcPeer(wire, label="recorded", on_notification=self._heard, on_request=self._asked)
        self.prefix = prefix
        self.roots: list[dict[str, Any]] = [{"uri": "file:///one", "name": "One"}]
        self.steps: list[Step] = [Step("greeting")]
        self._capabilities = capabilities
        self._answers: Answers = {}
        self._something = asyncio.Event()

    @property
    def step(self) -> Step:
        return self.steps[-1]

    async def greet(self) -> None:
        """The handshake; what the server can do is part of the recording."""
        wire = self.link.transport
        await wire.start(self.link)
        client = {"name": "recorder", "version": "0"}
        params = {"protocolVersion": VERSION, "capabilities": dict(self._capabilities), "clientInfo": client}
        hello = await self.link.request("initialize", params, timeout=10)
        self.step.answer = {"capabilities": hello["capabilities"]}
        wire.on_negotiated("handshake", hello["protocolVersion"])
        await self.link.notify("notifications/initialized")
        wire.listen(lambda: None)

    async def request(
        self, method: str, params: Params | None = None, *, title: str = "", answers: Answers | None = None,
        progress: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """A new step: one request with the answers to what is asked meanwhile; gives the result, empty at an error."""
        step = Step(title or f"{method} {json.dumps(params or {}, sort_keys=True)}")
        self.steps.append(step)
        self._answers = answers or {}
        on_progress: Callable[[Params], None] | None = (
            (lambda said: step.progress.append(dict(said))) if progress else None
        )
        try:
            result = await self.link.request(method, self._named(method, params), timeout=20, on_progress=on_progress)
        except RpcError as exc:
            step.answer = {"error": {"code": exc.code, "message": exc.message, "data": exc.data}}
            return {}
        except ToolFailure as exc:
            step.answer = {"no answer": str(exc)}
            return {}
        step.answer = {"result": self._own(method, result)}
        return result

    async def pages(self, method: str, key: str) -> list[dict[str, Any]]:
        """Everything of a list, sorted: how lists of many servers are joined and cut into pages is the gateway's."""
        items: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        while True:
            page = await self.request(method, cursor or None, title=method)
            if cursor:
                following_page = self.steps.pop()
                self.step.notifications += following_page.notifications
            items += self._own(method, page).get(key, [])
            if not (following := page.get("nextCursor")):
                break
            cursor = {"cursor": following}
        items.sort(key=lambda item: (item.get("uri", ""), item["name"]))
        if result := self.step.answer.get("result"):
            self.step.answer = {"result": {**{k: v for k, v in result.items() if k != "nextCursor"}, key: items}}
        return items

    async def heard(self, method: str, count: int = 1, *, steps: int = 1) -> None:
        """Wait until a notification has come with this step; of several steps, the first one is said to be its own."""
        first, *others = self.steps[-steps:]
        await self._until(
            method,
            lambda: sum(said["method"] == method for step in (first, *others) for said in step.notifications) >= count,
        )
        for step in others:
            first.notifications += step.notifications
            step.notifications = []

    async def asked(self, method: str) -> None:
        """Wait until a question belongs to this step."""
        await self._until(method, lambda: any(said["method"] == method for said in self.step.questions))

    async def _until(self, method: str, holds: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not holds():
                    self._something.clear()
                    await self._something.wait()
        except TimeoutError:
            self.step.in_vain.append(method)

    def _heard(self, method: str, params: Params, _origin: int | None) -> None:
        self.step.notifications.append({"method": method, "params": dict(params)})
        self._something.set()

    async def _asked(self, method: str, params: Params, _origin: int | None) -> dict[str, Any]:
        known = {"roots/list": {"roots": self.roots}, **self._answers}
        answer = known.get(method) or RpcError(METHOD_NOT_FOUND, f"nobody expected {method}")
        said = f"error {answer.code}: {answer.message}" if isinstance(answer, RpcError) else answer
        self.step.questions.append({"method": method, "params": dict(params), "our answer": said})
        self._something.set()
        if isinstance(answer, RpcError):
            raise answer
        return answer

    def _named(self, method: str, params: Params | None) -> Params | None:
        """The request with the name that this client knows the tool or prompt by."""
        if params is None:
            return None
        if method in {"tools/call", "prompts/get"}:
            return {**params, "name": self.prefix + params["name"]}
        if method == "completion/complete" and "name" in params["ref"]:
            return {**params, "ref": {**params["ref"], "name": self.prefix + params["ref"]["name"]}}
        return params

    def _own(self, method: str, result: dict[str, Any]) -> dict[str, Any]:
        """A list under the server's own names, without what is the gateway's own."""
        key = {"tools/list": "tools", "prompts/list": "prompts"}.get(method)
        if key is None or key not in result:
            return result
        items = [item for item in result[key] if item["name"].startswith(self.prefix)]
        return {**result, key: [{**item, "name": item["name"].removeprefix(self.prefix)} for item in items]}


@contextlib.asynccontextmanager
async def recording(
    wire: Transport, capabilities: Mapping[str, Any], prefix: str = ""
) -> AsyncGenerator[RecordingClient]:
    """A greeted client; `prefix` is what the gateway puts before the server's names."""
    client = RecordingClient(wire, capabilities, prefix)
    try:
        await client.greet()
        yield client
        await asyncio.sleep(SILENCE)
    finally:
        await client.link.close()


@dataclass(frozen=True)
class Rule:
    """Something that two runs of the same server never agree on."""

    why: str
    pattern: re.Pattern[str]
    instead: str


RULES = (
    Rule(
        "session, task and elicitation ids, and PEGBOARD_PROCESS in get-env, are random; numbered as they appear",
        re.compile(r"\b[0-9a-f]{8}(-?)(?:[0-9a-f]{4}\1){3}[0-9a-f]{12}\b"),
        "id",
    ),
    Rule(
        "dynamic resources say at what time of day they were made",
        re.compile(r"(?<=created at )\d{1,2}:\d{2}:\d{2}(?:\s[AP]M)?"),
        "<time of day>",
    ),
    Rule(
        "a task has the times of its beginning and last change",
        re.compile(r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z"),
        "<time>",
    ),
    Rule(
        "get-env: over HTTP, the two servers that are compared listen on a port each",
        re.compile(r'(?<="PORT": ")\d+'),
        "<port>",
    ),
)
RANDOM_LOG = re.compile(r"^(?:Debug|Info|Notice|Warning|Error|Critical|Alert|Emergency)[- ]level[- ]message")


class Normal:
    """One recording with all that is random replaced."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def steps(self, steps: list[Step]) -> list[dict[str, Any]]:
        """The steps in comparable form."""
        return [self._step(step) for step in steps]

    def _step(self, step: Step) -> dict[str, Any]:
        said = {
            "request": step.title,
            "answer": step.answer,
            # A token is the requester's own.
            "progress": [{k: v for k, v in said.items() if k != "progressToken"} for said in step.progress],
            "questions": [_without_attribution(asked) for asked in step.questions if asked["method"] != "roots/list"],
            "notifications": self._notifications(step),
            "waited in vain for": [] if step.title == "greeting" else step.in_vain,
        }
        return self.value(said)

    def _notifications(self, step: Step) -> list[dict[str, Any]]:
        """The notices of changed lists once each: how often is not said anywhere, and a gateway may join them."""
        changes = {said["method"] for said in step.notifications if said["method"].endswith("/list_changed")}
        if step.title == "greeting":
            # A server that is still registering its tools; a client of the gateway comes later.
            changes = set[str]()
        others = [_without_chance(said) for said in step.notifications if not said["method"].endswith("/list_changed")]
        others = [said for said in others if not _is_about_roots(said)]
        return others + [{"method": method} for method in sorted(changes)]

    def value(self, value: Any) -> Any:
        """A JSON value with the rules applied to all of its texts."""
        if isinstance(value, dict):
            found: dict[str, Any] = value
            return {key: self._blob(item) if key == "blob" else self.value(item) for key, item in found.items()}
        if isinstance(value, list):
            items: list[Any] = value
            return [self.value(item) for item in items]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        for rule in RULES:
            text = rule.pattern.sub(self._number if rule.instead == "id" else rule.instead, text)
        return text

    def _number(self, found: re.Match[str]) -> str:
        return self._ids.setdefault(found.group(), f"<id {len(self._ids) + 1}>")

    def _blob(self, blob: str) -> Any:
        """A dynamic resource has the time in base64."""
        with contextlib.suppress(binascii.Error, UnicodeDecodeError):
            text = base64.b64decode(blob, validate=True).decode()
            return {"base64 of": self._text(text)}
        return blob


def _without_attribution(asked: dict[str, Any]) -> dict[str, Any]:
    """A gateway says which server asks, in front of its words and in `_meta`; a server alone does not."""
    params = dict(asked["params"])
    meta = {key: value for key, value in params.pop("_meta", {}).items() if key != "pegboard/server"}
    message = params.get("message")
    named = {"message": message.removeprefix("[everything] ")} if isinstance(message, str) else {}
    return {**asked, "params": {**params, **named, **({"_meta": meta} if meta else {})}}


def _is_about_roots(said: dict[str, Any]) -> bool:
    """A server alone asks for roots at the start; behind a gateway it has to wait until a call is under way."""
    return str(said.get("params", {}).get("data")).startswith("Roots updated")


def _without_chance(said: dict[str, Any]) -> dict[str, Any]:
    """Simulated log messages have a level, and a text with it, at random."""
    data = said["params"].get("data")
    if isinstance(data, str) and RANDOM_LOG.match(data):
        level = {"level": "<at random>", "data": RANDOM_LOG.sub("<at random>", data)}
        return {**said, "params": {**said["params"], **level}}
    return said


def difference(expected: list[Step], got: list[Step]) -> str:
    """What the second recording has otherwise than the first, readable; empty if nothing."""
    wanted, found = Normal().steps(expected), Normal().steps(got)
    _only_known(wanted[0], found[0])
    # Compared as text: 1, 1.0 and true are different messages.
    texts = [[_lines(step) for step in steps] for steps in (wanted, found)]
    report: list[str] = []
    titles = [[step["request"] for step in steps] for steps in (wanted, found)]
    for tag, low, high, other_low, other_high in difflib.SequenceMatcher(None, *titles, autojunk=False).get_opcodes():
        if tag == "equal":
            for one, other in zip(texts[0][low:high], texts[1][other_low:other_high], strict=True):
                report += _diff(one, other)
        else:
            report += [f"--- only the server alone has: {title[:200]}" for title in titles[0][low:high]]
            report += [f"+++ only the gateway has: {title[:200]}" for title in titles[1][other_low:other_high]]
    return "\n".join(report)


def _only_known(wanted: dict[str, Any], found: dict[str, Any]) -> None:
    """A gateway may offer more than the server does, not less."""
    offered = found["answer"]["capabilities"]
    found["answer"]["capabilities"] = _within(offered, wanted["answer"]["capabilities"])


def _within(offered: Any, wanted: Any) -> Any:
    if not isinstance(offered, dict) or not isinstance(wanted, dict):
        return offered
    known: dict[str, Any] = offered
    return {key: _within(known[key], wanted[key]) for key in wanted if key in known}


def _lines(step: dict[str, Any]) -> list[str]:
    return json.dumps(step, indent=1, ensure_ascii=False, sort_keys=True).splitlines()


def _diff(one: list[str], other: list[str]) -> list[str]:
    if one == other:
        return []
    title = next(line for line in one if line.startswith(' "request"'))
    lines = difflib.unified_diff(one, other, lineterm="", n=2)
    return [f"=== {title.strip()[:200]}", *(line[:300] for line in list(lines)[2:])]
