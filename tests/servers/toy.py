"""A small MCP server written on the standard library alone, so that a hundred of them start in a moment.

It speaks either era, and its `misbehave` tool answers in every wrong way that has been seen. What it is like
comes as JSON in the first argument, e.g. `{"tools": ["a", "b"], "era": "modern", "pages": 2}`. Beyond tools it
offers what its `features` name; each of them is a class of its own below, with its methods and its tools.

The file is long because it is started as a script with `-I -S`, which cannot import what lies beside it.
"""

from __future__ import annotations

import itertools
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass, field
    from typing import Any
else:
    # The real ones import much of the standard library, which is most of what a start costs.
    Any = object

    def field(default_factory):
        """A default that each has of its own."""
        return default_factory

    def dataclass(cls):
        """Attributes by their names, with defaults."""

        def __init__(self, **given):  # noqa: N807
            if unknown := given.keys() - cls.__annotations__.keys():
                raise TypeError(f"a toy has no {', '.join(unknown)}")
            for name in cls.__annotations__.keys() - given.keys():
                default = getattr(cls, name)
                given[name] = default() if callable(default) else default
            self.__dict__ = given

        cls.__init__ = __init__
        return cls


Message = dict[str, Any]
Send = Callable[[Message], None]
# Questions by the key their answers come back under, each with its method and params.
Questions = dict[str, Message]
Ask = Callable[[Questions], Message]

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
# Everything that can be switched on.
FEATURES = ["tools", "resources", "prompts", "completions", "logging", "asking", "odd"]
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
ELICITATION_ID = "visit-1"
OPEN_SCHEMA: Message = {"type": "object", "additionalProperties": True}

RICH_RESULT: Message = {
    "content": [
        {"type": "text", "text": "grüße 日本語 \u2028 😀", "annotations": {"audience": ["user"], "priority": 0.5}},
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "toy://a", "mimeType": "text/plain", "text": "inside"}},
        {"type": "resource_link", "uri": "toy://b", "name": "b", "size": 12},
        {"type": "hologram", "nobody": {"knows": [1, None, {"deep": None}]}},
    ],
    "structuredContent": {
        "big": 123456789012345678901234567890,
        "negative": -(2**63) - 5,
        "null": None,
        "float": 1.5,
        "nested": {"a": [[], {}, [None]]},
    },
    "isError": False,
    "_meta": {"toy/key": {"kept": True}},
    "unheardOf": [1, 2, 3],
}


def wait_for_file(path: str) -> None:
    """Until somebody makes it, for half a minute at most."""
    deadline = time.monotonic() + 30
    # The toy starts without pathlib, which takes longer to load than all else.
    while not os.path.exists(path) and time.monotonic() < deadline:  # noqa: PTH110
        time.sleep(0.01)


@dataclass
class Settings:
    """What a toy is like."""

    name: str = "toy"
    features: list[str] = field(default_factory=lambda: ["tools"])
    # Announced beside those of the features.
    capabilities: dict[str, Any] = field(default_factory=dict)
    # Resources and templates beside those under `toy://NAME/`, so that two toys can offer the same.
    resource_uris: list[str] = field(default_factory=list)
    template_uris: list[str] = field(default_factory=list)
    # Where questions go in the handshake era: the call's own stream, or the `standing` one.
    ask_on: str = "call"
    # What a tool answers, by its name.
    results: dict[str, Any] = field(default_factory=dict)
    tools: list[str] = field(default_factory=list)
    raw_tools: list[Any] = field(default_factory=list)
    era: str = "both"
    versions: tuple[str, ...] = HANDSHAKE
    pages: int = 1
    endless_pages: bool = False
    start_delay: float = 0.0
    list_delay: float = 0.0
    list_fails: str = ""
    hang_on: tuple[str, ...] = ()
    die_on: tuple[str, ...] = ()
    dies_at_unknown: bool = False
    no_listen: bool = False
    refuses_initialize: bool = False
    silent_at_unknown: bool = False
    ttl_ms: int | None = None
    instructions: str | None = None
    noise: bool = False
    ignore_eof: bool = False
    ignore_sigterm: bool = False
    grandchild: bool = False
    log: str | None = None


class Core:
    """What every part of the server knows and needs."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.extra_tools: list[str] = []
        self.extra_prompts: list[str] = []
        self.extra_resources: list[str] = []
        self.calls: list[Message] = []
        self.cancelled: list[Any] = []
        self.requests: list[str] = []
        self.notes: list[Any] = []
        self.metas: dict[str, Any] = {}
        self.client: Message = {}
        self.levels: list[str] = []
        self.subscriptions: list[str] = []
        self.counter = 0
        self.numbers = itertools.count(1)
        self.tasks: list[str] = []
        self.broadcast: Send = lambda _: None
        self.write_raw: Callable[[bytes], None] = lambda _: None
        self.listeners: dict[Any, tuple[Send, Message]] = {}
        # Questions without an answer: which request each belongs to, and who waits.
        self.waiting: dict[Any, tuple[Any, queue.Queue[Message | None]]] = {}
        self.going_on = threading.Event()
        self.visits = 0
        self.stop_listening = threading.Event()

    def finished(self, result: Message, params: Message) -> Message:
        """In the modern era every result says what it is."""
        if is_modern(params) and "resultType" not in result:
            return {"resultType": "complete", **result}
        return result

    def page(self, key: str, items: list[Any], params: Message) -> Message:
        """One page of a list."""
        page = int(params.get("cursor") or 0)
        size = -(-len(items) // self.settings.pages)
        result: Message = {key: items[page * size : (page + 1) * size]}
        if (page + 1) * size < len(items):
            result["nextCursor"] = str(page + 1)
        return result | self.cacheable(params)

    def cacheable(self, params: Message) -> Message:
        """What lists and resources say of themselves in the modern era."""
        return {"ttlMs": self.settings.ttl_ms or 0, "cacheScope": "private"} if is_modern(params) else {}

    def announce(self, kind: str = "tools") -> None:
        """Say that a list changed, the way each era does."""
        method = f"notifications/{kind}/list_changed"
        for request_id, (listener, wanted) in list(self.listeners.items()):
            if wanted.get(f"{kind}ListChanged"):
                listener(note(method, {"_meta": {f"{META}subscriptionId": request_id}}))
        if self.settings.era != "modern" and not self.listeners:
            self.broadcast(note(method, None))

    def unknown(self, method: str) -> Any:
        """What older servers do when they are asked something they never heard of."""
        if self.settings.dies_at_unknown:
            os._exit(7)
        if self.settings.silent_at_unknown:
            raise Silence
        raise RpcError(-32601, f"Method not found: {method}")


class Asking(Core):
    """Questions to the client: requests of its own in the handshake era, unfinished results in the modern one."""

    def asking(self, params: Message, request_id: Any, send: Send, work: Callable[[Ask], Message]) -> Message | None:
        """Do work that asks, without keeping other messages waiting."""
        if is_modern(params):
            try:
                return work(lambda questions: self.ask_by_result(params, questions))
            except InputNeeded as needed:
                return needed.result

        def later() -> None:
            try:
                result = work(lambda questions: self.ask_now(request_id, send, questions))
            except Withdrawn:
                return
            send({"jsonrpc": "2.0", "id": request_id, "result": result})

        threading.Thread(target=later, daemon=True).start()
        return None

    def ask_now(self, request_id: Any, send: Send, questions: Questions) -> Message:
        """Ask everything at once and wait for all the answers."""
        asked = {key: self.put(request_id, send, question) for key, question in questions.items()}
        try:
            return {key: self.outcome(question_id) for key, question_id in asked.items()}
        finally:
            for question_id in asked.values():
                del self.waiting[question_id]

    def put(self, request_id: Any, send: Send, question: Message) -> Any:
        """Send one question; ids are texts and numbers in turn."""
        number = next(self.numbers)
        question_id = f"question-{number}" if number % 2 else number
        self.waiting[question_id] = (request_id, queue.Queue())
        (self.broadcast if self.settings.ask_on == "standing" else send)(
            {"jsonrpc": "2.0", "id": question_id, **question}
        )
        return question_id

    def outcome(self, question_id: Any) -> Message:
        """The client's result as it came, or `{"error": …}`."""
        try:
            answer = self.waiting[question_id][1].get(timeout=120)
        except queue.Empty:
            raise Withdrawn from None
        if answer is None:
            raise Withdrawn
        return answer["result"] if "result" in answer else {"error": answer["error"]}

    def answered(self, message: Message) -> None:
        if waiting := self.waiting.get(message.get("id")):
            waiting[1].put(message)

    def withdraw(self, request_id: Any) -> None:
        """Nobody waits for this call any more."""
        for owner, waiting in list(self.waiting.values()):
            if owner == request_id:
                waiting.put(None)

    def ask_by_result(self, params: Message, questions: Questions) -> Message:
        """The answers that came with the retry, or a result that asks for them."""
        subject = str(params.get("name") or params.get("uri"))
        known = opened(subject, params.get("requestState")) if "requestState" in params else {}
        if "inputResponses" in params and "requestState" not in params:
            raise RpcError(-32602, "inputResponses without their requestState")
        known |= params.get("inputResponses") or {}
        missing = {key: question for key, question in questions.items() if key not in known}
        if not missing:
            return {key: known[key] for key in questions}
        capabilities = (params.get("_meta") or {}).get(f"{META}clientCapabilities") or {}
        lacking = {name: {} for question in missing.values() for name in lacks(capabilities, question)}
        if lacking:
            raise RpcError(-32021, f"The client lacks {', '.join(lacking)}", {"requiredCapabilities": lacking})
        state = sealed(subject, known)
        raise InputNeeded({"resultType": "input_required", "inputRequests": missing, "requestState": state})

    def tool_ask_form(self, arguments: Message, params: Message, request_id: Any, send: Send) -> Message | None:
        if "odd" in arguments:
            return {"resultType": "input_required", "inputRequests": arguments["odd"]}
        questions = {"form": form(arguments.get("who"))}
        return self.asking(params, request_id, send, lambda ask: answers_shown(ask(questions)))

    def tool_ask_url(self, arguments: Message, params: Message, request_id: Any, send: Send) -> Message | None:
        """In the handshake era it also says when the visit is over."""
        modern = is_modern(params)

        def work(ask: Ask) -> Message:
            answers = ask({"url": url(arguments.get("who"), modern=modern)})
            if not modern:
                send(note("notifications/elicitation/complete", {"elicitationId": ELICITATION_ID}))
            return answers_shown(answers)

        return self.asking(params, request_id, send, work)

    def tool_ask_model(self, arguments: Message, params: Message, request_id: Any, send: Send) -> Message | None:
        questions = {"model": model(arguments.get("who"))}
        return self.asking(params, request_id, send, lambda ask: answers_shown(ask(questions)))

    def tool_ask_roots(self, arguments: Message, params: Message, request_id: Any, send: Send) -> Message | None:
        questions: Questions = {"roots": {"method": "roots/list"}}
        return self.asking(params, request_id, send, lambda ask: answers_shown(ask(questions)))

    def tool_ask_twice(self, arguments: Message, params: Message, request_id: Any, send: Send) -> Message | None:
        """One question, and another one that knows the first one's answer."""

        def work(ask: Ask) -> Message:
            first = ask({"first": form(arguments.get("who"))})
            second = ask({"second": form(f"{first['first'].get('content', {}).get('name')} again")})
            return answers_shown({**first, **second})

        return self.asking(params, request_id, send, work)

    def tool_ask_both(self, arguments: Message, params: Message, request_id: Any, send: Send) -> Message | None:
        questions = {"form": form(arguments.get("who")), "model": model(arguments.get("who"))}
        return self.asking(params, request_id, send, lambda ask: answers_shown(ask(questions)))

    def tool_ask_withdrawn(self, arguments: Message, params: Message, request_id: Any, send: Send) -> Message | None:
        """A question that the server takes back once the tool `go_on` is called; in the handshake era only."""

        def work(_: Ask) -> Message:
            question_id = self.put(request_id, send, form(arguments.get("who")))
            self.going_on.wait(60)
            del self.waiting[question_id]
            send(note("notifications/cancelled", {"requestId": question_id, "reason": "never mind"}))
            return answers_shown({})

        self.going_on.clear()
        return self.asking(params, request_id, send, work)

    def tool_go_on(self, *_: Any) -> Message:
        self.going_on.set()
        return {"content": []}

    def tool_behind_a_page(self, *_: Any) -> Message:
        """Refused until its user has been to a page; the second time it is taken for granted that they were."""
        self.visits += 1
        if self.visits % 2:
            page = {"mode": "url", "message": "Sign in", "url": "https://example.com/in", "elicitationId": "page-1"}
            raise RpcError(-32042, "sign in first", {"elicitations": [page]})
        return {"content": [{"type": "text", "text": "inside"}]}


class Resources(Asking):
    """Resources, their templates, and who watches them."""

    @property
    def base(self) -> str:
        return f"toy://{self.settings.name}"

    def on_resources_list(self, params: Message, *_: Any) -> Message:
        uris = [f"{self.base}/{kind}" for kind in ("text", "blob", "many", "asking")]
        uris += [*self.settings.resource_uris, *self.extra_resources]
        return self.page("resources", [resource(uri) for uri in uris], params)

    def on_resources_templates_list(self, params: Message, *_: Any) -> Message:
        templates = [f"{self.base}/item/{{id}}", *self.settings.template_uris]
        return self.page("resourceTemplates", [template(uri) for uri in templates], params)

    def on_resources_read(self, params: Message, request_id: Any, send: Send) -> Message | None:
        uri = str(params.get("uri"))
        if uri == f"{self.base}/asking":

            def work(ask: Ask) -> Message:
                told = json.dumps(ask({"form": form(uri)}))
                return {"contents": [{"uri": uri, "text": told}], **self.cacheable(params)}

            return self.asking(params, request_id, send, work)
        contents = self.contents(uri)
        if contents is None:
            raise RpcError(-32602 if is_modern(params) else -32002, f"Resource not found: {uri}", {"uri": uri})
        result: Message = {"contents": contents, "_meta": {"toy/params": params}, "unheardOf": [None]}
        return result | self.cacheable(params)

    def contents(self, uri: str) -> list[Message] | None:
        owner = self.settings.name
        kind = uri.removeprefix(f"{self.base}/")
        known: dict[str, list[Message]] = {
            "text": [
                {
                    "uri": uri,
                    "mimeType": "text/plain",
                    "text": f"grüße \u2028 😀 {owner}",
                    "_meta": {"toy/key": {"big": 2**80, "none": None}},
                    "unheardOf": None,
                }
            ],
            "blob": [{"uri": uri, "mimeType": "application/octet-stream", "blob": "AAECAw=="}],
            "many": [{"uri": f"{uri}/1", "text": "one"}, {"uri": f"{uri}/2", "blob": "Ag=="}],
            "hidden": [{"uri": uri, "text": f"hidden {owner}"}],
        }
        if uri.startswith(self.base) and kind in known:
            return known[kind]
        literals = [f"{self.base}/item/", *(shape.partition("{")[0] for shape in self.settings.template_uris)]
        listed = uri in self.settings.resource_uris or uri in self.extra_resources
        if listed or any(uri.startswith(literal) for literal in literals):
            return [{"uri": uri, "text": f"{uri} of {owner}"}]
        return None

    def on_resources_subscribe(self, params: Message, *_: Any) -> Message:
        if is_modern(params):
            self.unknown("resources/subscribe")
        self.subscriptions.append(str(params.get("uri")))
        return {}

    def on_resources_unsubscribe(self, params: Message, *_: Any) -> Message:
        if is_modern(params):
            self.unknown("resources/unsubscribe")
        if params.get("uri") in self.subscriptions:
            self.subscriptions.remove(str(params.get("uri")))
        return {}

    def watched(self) -> list[str]:
        """Every URI that somebody subscribed to, once for each subscription."""
        streams = [wanted.get("resourceSubscriptions") or [] for _, wanted in self.listeners.values()]
        return [*self.subscriptions, *(uri for uris in streams for uri in uris)]

    def tool_touch(self, arguments: Message, *_: Any) -> Message:
        """Say that a resource changed, to whoever subscribed."""
        uri, told = arguments["uri"], 0
        for request_id, (listener, wanted) in list(self.listeners.items()):
            if uri in (wanted.get("resourceSubscriptions") or []):
                told += 1
                meta = {f"{META}subscriptionId": request_id, "toy/key": 1}
                listener(note("notifications/resources/updated", {"uri": uri, "_meta": meta}))
        if self.settings.era != "modern" and uri in self.subscriptions:
            told += 1
            self.broadcast(note("notifications/resources/updated", {"uri": uri, "_meta": {"toy/key": 1}}))
        return {"content": [{"type": "text", "text": str(told)}]}

    def tool_linked(self, arguments: Message, *_: Any) -> Message:
        """A link to a resource that stands in no list, or to the one that was named."""
        link = {
            "type": "resource_link",
            "uri": arguments.get("uri", f"{self.base}/hidden"),
            "name": "linked",
            "size": 3,
        }
        return {"content": [link]}


class Prompts(Asking):
    """Prompts, and completion for them and for templates."""

    def on_prompts_list(self, params: Message, *_: Any) -> Message:
        return self.page("prompts", [prompt(name) for name in self.prompt_names()], params)

    def prompt_names(self) -> list[str]:
        return ["greet", "kinds", "asking", *self.extra_prompts]

    def on_prompts_get(self, params: Message, request_id: Any, send: Send) -> Message | None:
        name = params.get("name")
        if name not in self.prompt_names():
            raise RpcError(-32602, f"Unknown prompt: {name}")
        if name == "asking":
            return self.asking(
                params, request_id, send, lambda ask: prompted(params, [json.dumps(ask({"form": form("prompt")}))])
            )
        contents = RICH_RESULT["content"] if name == "kinds" else [json.dumps(params.get("arguments"))]
        return prompted(params, contents)

    def on_completion_complete(self, params: Message, *_: Any) -> Message:
        """One value: what was asked for, as it came."""
        came = {key: value for key, value in params.items() if key != "_meta"}
        completion = {"values": [json.dumps(came)], "total": 2**70, "hasMore": True, "unheardOf": None}
        return {"completion": completion, "_meta": {"toy/params": params}}


class Logging(Core):
    """Log lines for the client."""

    def on_logging_setLevel(self, params: Message, *_: Any) -> Message:  # noqa: N802
        if is_modern(params):
            self.unknown("logging/setLevel")
        if params.get("level") not in LEVELS:
            raise RpcError(-32602, f"Unknown level: {params.get('level')}")
        self.levels.append(params["level"])
        return {}

    def tool_log(self, arguments: Message, params: Message, request_id: Any, send: Send) -> Message:
        """Log one line, if its level is wanted."""
        level = arguments.get("level", "info")
        if is_modern(params):
            wanted = (params.get("_meta") or {}).get(f"{META}logLevel")
        else:
            wanted = self.levels[-1] if self.levels else "debug"
        admitted = wanted is not None and LEVELS.index(level) >= LEVELS.index(wanted)
        if admitted:
            said = {"level": level, "logger": "toy.log", "data": arguments.get("data"), "unheardOf": {"a": None}}
            send(note("notifications/message", said))
        return {"content": [{"type": "text", "text": "logged" if admitted else "dropped"}]}


class Odd(Core):
    """What no gateway ever heard of, and tasks."""

    def on_toy_shout(self, params: Message, *_: Any) -> Message:
        return {"shouted": params, "by": self.settings.name, "big": 2**80}

    def on_tasks_get(self, params: Message, *_: Any) -> Message:
        return {"taskId": params.get("taskId"), "status": "completed", "by": self.settings.name, "ttl": None}

    def on_tasks_list(self, *_: Any) -> Message:
        return {"tasks": [{"taskId": task_id, "status": "working"} for task_id in self.tasks], "nextCursor": "more"}

    def tool_start_task(self, *_: Any) -> Message:
        now = "2026-11-15T12:00:00Z"
        task_id = f"{self.settings.name}-task-{next(self.numbers)}"
        self.tasks.append(task_id)
        return {"task": {"taskId": task_id, "status": "working", "createdAt": now, "lastUpdatedAt": now, "ttl": 60_000}}

    def tool_whisper(self, arguments: Message, params: Message, request_id: Any, send: Send) -> Message:
        send(note("notifications/toy/news", {"who": arguments.get("who"), "big": 2**80, "none": None}))
        return {"content": [{"type": "text", "text": "whispered"}]}


class Toy(Resources, Prompts, Logging, Odd):
    """The server itself, without any transport."""

    def handle(self, message: Message, send: Send) -> None:
        """Take one message and send whatever answers it."""
        method, request_id = message.get("method"), message.get("id")
        if method is None:
            self.answered(message)
            return
        self.requests.append(method)
        if self.settings.log:
            with open(self.settings.log, "a", encoding="utf-8") as file:  # noqa: PTH123
                file.write(f"{os.getpid()} {method}\n")
        params = message.get("params") or {}
        self.notice(method, params, request_id)
        if request_id is None or method in self.settings.hang_on:
            return
        if method in self.settings.die_on:
            os._exit(3)
        try:
            result = self.answer(method, params, request_id, send)
        except RpcError as exc:
            send({"jsonrpc": "2.0", "id": request_id, "error": exc.error})
            return
        if result is not None:
            send({"jsonrpc": "2.0", "id": request_id, "result": self.finished(result, params)})

    def notice(self, method: str, params: Message, request_id: Any) -> None:
        """Remember what the tool `seen` tells of."""
        if method == "notifications/cancelled":
            self.cancelled.append(params.get("requestId"))
            self.listeners.pop(params.get("requestId"), None)
            self.withdraw(params.get("requestId"))
        elif request_id is None:
            self.notes.append([method, params])
        elif method == "initialize":
            self.client = params
        elif params.get("name") != "seen":
            self.metas[method] = params.get("_meta")

    def answer(self, method: str, params: Message, request_id: Any, send: Send) -> Message | None:
        """The result of a request; `None` if it has been sent, or never will be."""
        if is_modern(params) and self.settings.era == "handshake":
            self.unknown(method)
        if method == "initialize":
            return self.initialize(params)
        if method == "server/discover":
            return self.discover()
        if method == "ping":
            return {}
        if method == "subscriptions/listen" and self.settings.era != "handshake":
            return self.listen(params, request_id, send)
        handler = getattr(self, f"on_{method.replace('/', '_')}", None)
        if handler is None or FEATURE_OF.get(method.partition("/")[0]) not in self.settings.features:
            return self.unknown(method)
        return handler(params, request_id, send)

    def capabilities(self) -> Message:
        known: Message = {
            "tools": {"listChanged": True},
            "resources": {"subscribe": True, "listChanged": True},
            "prompts": {"listChanged": True},
            "completions": {},
            "logging": {},
        }
        features = self.settings.features
        return {name: value for name, value in known.items() if name in features} | self.settings.capabilities

    def initialize(self, params: Message) -> Message:
        if self.settings.refuses_initialize:
            raise RpcError(-32601, "Method not found: initialize")
        if self.settings.era == "modern":
            data = {"supported": [MODERN], "requested": params.get("protocolVersion")}
            raise RpcError(-32022, "Unsupported protocol version", data)
        wanted = params.get("protocolVersion")
        version = wanted if wanted in self.settings.versions else self.settings.versions[-1]
        result = {
            "protocolVersion": version,
            "capabilities": self.capabilities(),
            "serverInfo": {"name": self.settings.name, "version": "1"},
        }
        if self.settings.instructions:
            result["instructions"] = self.settings.instructions
        return result

    def discover(self) -> Message | None:
        if self.settings.era == "handshake":
            return self.unknown("server/discover")
        result = {
            "supportedVersions": [MODERN],
            "capabilities": self.capabilities(),
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {f"{META}serverInfo": {"name": self.settings.name, "version": "1"}},
        }
        if self.settings.instructions:
            result["instructions"] = self.settings.instructions
        return result

    def tool_names(self) -> list[str]:
        more = [name for feature in self.settings.features for name in FEATURE_TOOLS.get(feature, [])]
        return [*BUILT_IN, *more, *self.settings.tools, *self.extra_tools]

    def on_tools_list(self, params: Message, *_: Any) -> Message:
        time.sleep(self.settings.list_delay)
        if self.settings.list_fails:
            raise RpcError(-32000, self.settings.list_fails)
        tools = [*(tool(name) for name in self.tool_names()), *self.settings.raw_tools]
        if self.settings.endless_pages:
            page = int(params.get("cursor") or 0)
            return {"tools": [tool(f"page_{page}")], "nextCursor": str(page + 1)}
        return self.page("tools", tools, params)

    def on_tools_call(self, params: Message, request_id: Any, send: Send) -> Message | None:
        name, arguments = params.get("name"), params.get("arguments") or {}
        self.calls.append(params)
        listed = [*self.tool_names(), *(raw.get("name") for raw in self.settings.raw_tools if isinstance(raw, dict))]
        if name not in listed:
            raise RpcError(-32602, f"Unknown tool: {name}")
        if name in self.settings.results:
            return self.settings.results[name]
        known = getattr(self, f"tool_{name}", None)
        if known is None:
            return {"content": [{"type": "text", "text": f"{self.settings.name}:{name}"}]}
        return known(arguments, params, request_id, send)

    def listen(self, params: Message, request_id: Any, send: Send) -> None:
        meta = {f"{META}subscriptionId": request_id}
        wanted = params.get("notifications") or {}
        self.listeners[request_id] = (send, wanted)
        send(note("notifications/subscriptions/acknowledged", {"notifications": wanted, "_meta": meta}))

    # The tools. Each takes (arguments, params, request id, send).

    def tool_echo(self, arguments: Message, params: Message, *_: Any) -> Message:
        """Everything that came, as it came."""
        return {"content": [{"type": "text", "text": json.dumps(arguments)}], "structuredContent": {"params": params}}

    def tool_rich(self, *_: Any) -> Message:
        return json.loads(json.dumps(RICH_RESULT))

    def tool_fails(self, *_: Any) -> Message:
        return {"content": [{"type": "text", "text": "it went wrong"}], "isError": True}

    def tool_refuses(self, *_: Any) -> Message:
        raise RpcError(-32099, "no, thank you", {"why": ["because", None]})

    def tool_pid(self, *_: Any) -> Message:
        return {"content": [{"type": "text", "text": str(os.getpid())}]}

    def tool_count(self, *_: Any) -> Message:
        self.counter += 1
        return {"content": [{"type": "text", "text": str(self.counter)}]}

    def tool_environment(self, *_: Any) -> Message:
        return {"content": [{"type": "text", "text": json.dumps(dict(os.environ))}]}

    def tool_seen(self, *_: Any) -> Message:
        """What the server noticed of its client."""
        seen = {
            "requests": self.requests,
            "cancelled": self.cancelled,
            "calls": len(self.calls),
            "notes": self.notes,
            "meta": self.metas,
            "client": self.client,
            "levels": self.levels,
            "subscriptions": self.watched(),
            "open": len(self.waiting),
        }
        return {"content": [{"type": "text", "text": json.dumps(seen)}], "structuredContent": seen}

    def tool_progress(self, arguments: Message, params: Message, request_id: Any, send: Send) -> Message:
        token = (params.get("_meta") or {}).get("progressToken")
        steps, gates = arguments.get("steps", 3), arguments.get("gates")
        for step in range(1, steps + 1):
            if gates is not None:
                wait_for_file(f"{gates}/{step}")
            if token is not None:
                said = {
                    "progressToken": token,
                    "progress": step,
                    "total": steps,
                    "message": f"step {step}",
                    "odd": True,
                }
                send(note("notifications/progress", said))
            time.sleep(arguments.get("pause", 0))
        for said in arguments.get("also") or ():
            send(note("notifications/progress", {"progressToken": token, **said}))
        if arguments.get("stuck"):
            for _ in range(200):
                send(note("notifications/progress", {"progressToken": token, "progress": steps}))
                time.sleep(0.05)
        return {
            "content": [{"type": "text", "text": f"{steps} steps, token {'given' if token is not None else 'none'}"}]
        }

    def tool_sleep(self, arguments: Message, params: Message, request_id: Any, send: Send) -> None:
        def later() -> None:
            deadline = time.monotonic() + arguments.get("seconds", 1)
            while time.monotonic() < deadline and request_id not in self.cancelled:
                time.sleep(0.01)
            result: Message = {"content": [{"type": "text", "text": "awake"}]}
            send({"jsonrpc": "2.0", "id": request_id, "result": self.finished(result, params)})

        threading.Thread(target=later, daemon=True).start()

    def tool_change(self, arguments: Message, params: Message, request_id: Any, send: Send) -> Message:
        """Add and remove tools, prompts and resources, and say so."""
        for name in arguments.get("add", []):
            self.extra_tools.append(name)
        for name in arguments.get("remove", []):
            self.extra_tools.remove(name)
        self.extra_prompts += arguments.get("add_prompts", [])
        self.extra_resources += arguments.get("add_resources", [])
        if arguments.get("announce", True):
            changed = [kind for kind in ("prompts", "resources") if f"add_{kind}" in arguments]
            for kind in changed or ["tools"]:
                self.announce(kind)
        return {"content": [{"type": "text", "text": ",".join(self.extra_tools)}]}

    def tool_die(self, arguments: Message, *_: Any) -> None:
        sys.stderr.write(arguments.get("words", "goodbye") + "\n")
        sys.stderr.flush()
        os._exit(int(arguments.get("code", 1)))

    def tool_misbehave(self, arguments: Message, params: Message, request_id: Any, send: Send) -> None:
        """Answer wrongly, in the way that was asked for."""
        good: Message = {"jsonrpc": "2.0", "id": request_id, "result": {"content": [{"type": "text", "text": "late"}]}}
        text = json.dumps(good).encode()
        how = arguments["how"]
        size = int(arguments.get("size", 0))
        raw: dict[str, bytes] = {
            "not_json": b'{"jsonrpc":"2.0","id":%d,"result":{oops}}\n' % request_id,
            "not_utf8": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\xff\xfe"}]}}\n'
            % request_id,
            "half_then_die": text[:20],
            "twice": text + b"\n" + text + b"\n",
            "wrong_id": json.dumps({**good, "id": 999_999}).encode() + b"\n",
            "no_result": b'{"jsonrpc":"2.0","id":%d}\n' % request_id,
            "result_is_list": b'{"jsonrpc":"2.0","id":%d,"result":[1]}\n' % request_id,
            "not_an_object": b"[[1]]\n42\nnull\n",
            "deep": b'{"jsonrpc":"2.0","id":%d,"result":' % request_id + b"[" * 5000 + b"]" * 5000 + b"}\n",
            "split": text + b"\n",
            "odd_question": b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}\n'
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[1]}}\n' + text + b"\n",
            "surrogate": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"cut \\ud83d"}]}}\n'
            % request_id,
        }
        if how == "huge":
            filler = b"x" * size
            self.write_raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % request_id)
            self.write_raw(filler + b'"}]}}\n')
        elif how == "endless":
            while True:
                self.write_raw(b"x" * 1_000_000)
        elif how == "late":
            threading.Timer(float(arguments["after"]), lambda: self.write_raw(text + b"\n")).start()
        elif how == "split":
            for index in range(len(raw["split"])):
                self.write_raw(raw["split"][index : index + 1])
        else:
            self.write_raw(raw[how])
            if how == "half_then_die":
                os._exit(5)


def tools_of(part: type[Core]) -> list[str]:
    """The tools that one part brings."""
    return [name.removeprefix("tool_") for name in vars(part) if name.startswith("tool_") and name != "tool_names"]


BUILT_IN = tools_of(Toy)
FEATURE_TOOLS = {
    "resources": tools_of(Resources),
    "logging": tools_of(Logging),
    "asking": tools_of(Asking),
    "odd": tools_of(Odd),
}
# Which feature a method belongs to, by the first word of its name.
FEATURE_OF = {
    "tools": "tools",
    "resources": "resources",
    "prompts": "prompts",
    "completion": "completions",
    "logging": "logging",
    "toy": "odd",
    "tasks": "odd",
}


class RpcError(Exception):
    """An error that is the answer."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error: Message = {"code": code, "message": message}
        if data is not None:
            self.error["data"] = data


class Silence(Exception):  # noqa: N818
    """No answer at all."""


class InputNeeded(Exception):  # noqa: N818
    """Carries the result that asks out of the work that wanted to know."""

    def __init__(self, result: Message) -> None:
        super().__init__("the client has to answer first")
        self.result = result


class Withdrawn(Exception):  # noqa: N818
    """The call was cancelled before its question was answered."""


def sealed(subject: str, known: Message) -> str:
    """Answers of earlier rounds as the client carries them."""
    import base64
    import hashlib

    text = base64.b64encode(json.dumps(known).encode()).decode()
    return f"{hashlib.sha256(f'{subject} {text}'.encode()).hexdigest()}.{text}"


def opened(subject: str, state: Any) -> Message:
    """What was sealed for the same tool, prompt or resource."""
    import base64
    import hashlib

    digest, _, text = str(state).partition(".")
    if digest != hashlib.sha256(f"{subject} {text}".encode()).hexdigest():
        raise RpcError(-32602, "a requestState that this server did not give out")
    return json.loads(base64.b64decode(text))


def lacks(capabilities: Message, question: Message) -> list[str]:
    """The capability that a question needs, if the client did not declare it."""
    params = question.get("params") or {}
    name = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling"}.get(question["method"], "roots")
    declared = capabilities.get(name)
    if declared is None or (params.get("mode") == "url" and "url" not in declared):
        return [name]
    return []


def form(who: Any) -> Message:
    """A question with a form."""
    fields = {"name": {"type": "string", "title": "Name"}, "big": {"type": "integer", "minimum": -(2**70)}}
    schema = {"type": "object", "properties": fields, "required": ["name"]}
    params = {"mode": "form", "message": f"Is it {who}? 😀", "requestedSchema": schema, "_meta": {"toy/key": [None]}}
    return {"method": "elicitation/create", "params": {**params, "unheardOf": {"none": None, "big": 2**80}}}


def url(who: Any, *, modern: bool) -> Message:
    """A question that sends the user somewhere."""
    params = {"mode": "url", "message": f"Go there, {who}", "url": "https://example.com/pay?q=ü"}
    given = {} if modern else {"elicitationId": ELICITATION_ID}
    return {"method": "elicitation/create", "params": {**params, **given}}


def model(who: Any) -> Message:
    """A question for the client's model, with everything that can stand in one."""
    used = {"type": "tool_use", "id": "u1", "name": "weather", "input": {"big": 2**80, "none": None}}
    outcome = {
        "type": "tool_result",
        "toolUseId": "u1",
        "content": [{"type": "text", "text": "warm"}],
        "isError": False,
    }
    said = [
        {"role": "user", "content": {"type": "text", "text": f"Hello {who}"}},
        {"role": "user", "content": [RICH_RESULT["content"][1], RICH_RESULT["content"][2]]},
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [outcome]},
    ]
    return {
        "method": "sampling/createMessage",
        "params": {
            "messages": said,
            "maxTokens": 100,
            "temperature": 0.5,
            "systemPrompt": "Be brief.",
            "stopSequences": ["\n\n"],
            "modelPreferences": {"hints": [{"name": "small"}], "costPriority": 1},
            "metadata": {"deep": [None, {}]},
            "tools": [tool("weather")],
            "toolChoice": {"mode": "auto"},
        },
    }


def answers_shown(answers: Message) -> Message:
    """The result of a tool that asked."""
    return {"content": [{"type": "text", "text": json.dumps(answers)}], "structuredContent": {"answers": answers}}


def resource(uri: str) -> Message:
    """A resource's definition."""
    return {
        "uri": uri,
        "name": uri.rpartition("/")[2],
        "title": f"The resource {uri}",
        "mimeType": "text/plain",
        "size": 2**53 + 1,
        "annotations": {"audience": ["user"], "priority": 0.5},
        "_meta": {"toy/key": {"none": None}},
        "unheardOf": [1, None],
    }


def template(uri: str) -> Message:
    """A template's definition."""
    return {"uriTemplate": uri, "name": "item", "description": "Items", "_meta": {"toy/key": 1}, "unheardOf": None}


def prompt(name: str) -> Message:
    """A prompt's definition."""
    given = [{"name": "who", "title": "Who", "description": "Whom to greet", "required": True, "unheardOf": 1}]
    icons = [{"src": "data:image/png;base64,AA==", "mimeType": "image/png", "sizes": ["48x48"]}]
    more = {"icons": icons, "_meta": {"toy/key": {"none": None}}, "unheardOf": [2**80]}
    return {"name": name, "title": name.title(), "description": f"The prompt {name}.", "arguments": given, **more}


def prompted(params: Message, contents: list[Any]) -> Message:
    """The messages of a prompt, and what it was asked with."""
    blocks = [{"type": "text", "text": content} if isinstance(content, str) else content for content in contents]
    messages = [{"role": "user", "content": block, "unheardOf": None} for block in blocks]
    return {"description": "said", "messages": messages, "_meta": {"toy/params": params}, "unheardOf": [None]}


def tool(name: str) -> Message:
    """A tool's definition."""
    return {"name": name, "description": f"The tool {name}.", "inputSchema": dict(OPEN_SCHEMA)}


def note(method: str, params: Message | None) -> Message:
    """A notification."""
    return {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})


def is_modern(params: Message) -> bool:
    """Whether a request carries the envelope of 2026-07-28."""
    return f"{META}protocolVersion" in (params.get("_meta") or {})


def run_stdio(toy: Toy) -> None:
    """Serve on stdin and stdout."""
    settings = toy.settings
    lock = threading.Lock()

    def write_raw(data: bytes) -> None:
        with lock:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def send(message: Message) -> None:
        write_raw(json.dumps(message).encode() + b"\n")

    toy.broadcast, toy.write_raw = send, write_raw
    if settings.ignore_sigterm:
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if settings.grandchild:
        import subprocess

        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    time.sleep(settings.start_delay)
    if settings.noise:
        write_raw(b"Toy server 1.0 starting up...\n\n")
    for line in sys.stdin.buffer:
        try:
            toy.handle(json.loads(line), send)
        except Silence:
            continue
    while settings.ignore_eof:
        time.sleep(1)


def main() -> None:
    """Run as a process: `toy.py [JSON]`."""
    given = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    run_stdio(Toy(Settings(**given)))


if __name__ == "__main__":
    main()
