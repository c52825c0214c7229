"""What a rule hides is hidden on every surface, with the same bytes as a name that never was."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from auth.asking import ask_modern
from harness import LIMIT, Gateway, RawClient, http_client, open_gateway, serving, stdio_client, toy, write_config
from pegboard.servers.errors import RpcError

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]

FEATURES = ["tools", "resources", "prompts", "completions", "logging", "asking", "odd"]
VERSIONS = ["2025-11-25", "2026-07-28"]
READS = {"annotations": {"readOnlyHint": True}}
SCHEMA = {"type": "object"}
META = "io.modelcontextprotocol/"


def server(name: str, **more: Any) -> dict[str, Any]:
    """A server that has something of everything, under names that say whose it is."""
    tools = [
        {"name": "look", "description": f"Look at what {name} has.", "inputSchema": SCHEMA, **READS},
        {"name": "wipe", "description": f"Wipe the disks of {name}.", "inputSchema": SCHEMA},
    ]
    return toy(name=name, features=FEATURES, raw_tools=tools, instructions=f"Ask {name} politely.", **more)


SERVERS = {"public": server("public"), "vault": server("vault")}


@dataclass(frozen=True)
class Case:
    """A rule, what it hides, and names that never were."""

    rule: Mapping[str, Any]
    # Names as they are, and as nobody has them: of a server, a tool, a prompt, the beginning of resources.
    hidden: tuple[str, str, str, str]
    never: tuple[str, str, str, str]
    # What must not be seen in any answer.
    words: str
    # What can still be called.
    left: str = "public__look"


CASES = {
    "servers": Case(
        {"servers": ["public"]},
        ("vault", "vault__wipe", "vault__greet", "toy://vault"),
        ("voult", "voult__wipe", "voult__greet", "toy://voult"),
        r"vault",
    ),
    "toolsets alone": Case(
        {"toolsets": ["memory"]},
        ("vault", "vault__wipe", "vault__greet", "toy://vault"),
        ("voult", "voult__wipe", "voult__greet", "toy://voult"),
        r"vault|public",
        left="memory_list",
    ),
    "deny": Case(
        {"tools": {"deny": ["vault__*"]}},
        ("vault", "vault__wipe", "vault__greet", "toy://vault"),
        ("voult", "voult__wipe", "voult__greet", "toy://voult"),
        r"vault",
    ),
    "deny a tool": Case(
        {"tools": {"deny": ["*__wipe"]}},
        ("", "public__wipe", "", ""),
        ("", "public__wupe", "", ""),
        r"__wipe|Wipe",
    ),
    "allow": Case(
        {"tools": {"allow": ["public__look"]}},
        ("vault", "public__wipe", "public__greet", "toy://public"),
        ("voult", "public__wupe", "public__grxxt", "toy://pxblic"),
        r"vault|wipe|toy://|greet|memory_",
    ),
    "read only": Case(
        {"readOnly": True},
        ("", "vault__wipe", "", ""),
        ("", "vault__wupe", "", ""),
        r"__wipe|Wipe",
    ),
}


@contextlib.asynccontextmanager
async def house(tmp_path: Path, case: Case, expose: str = "auto") -> AsyncGenerator[tuple[Gateway, dict[str, str]]]:
    """A gateway whose servers are known, and the header of a token under the rule."""
    toolsets = ["discovery", "memory", "tasks"]
    async with open_gateway(tmp_path, SERVERS, expose=expose, toolsets=toolsets) as gateway:
        await gateway.board.refresh()
        await gateway.board.discovery.discover_resources(LIMIT)
        yield gateway, await gateway.token(**case.rule)


async def outcome(work: Awaitable[Any]) -> str:
    """What comes of a request, as text."""
    try:
        return json.dumps(await work, sort_keys=True)
    except RpcError as exc:
        return json.dumps([exc.code, exc.message, exc.data])


async def ask_everything(client: RawClient, names: tuple[str, str, str, str]) -> dict[str, str]:
    """Every request of MCP that can name something."""
    owner, tool, prompt, uri = names
    found = {
        "call": client.call(tool, {}),
        "tool_call": client.call("tool_call", {"name": tool, "arguments": {}}),
        "describe": client.call("tool_describe", {"name": tool}),
        "load": client.call("tool_load", {"names": [tool]}),
        "unload": client.call("tool_unload", {"names": [tool]}),
        "active": client.call("tool_active", {}),
    }
    if owner:
        meta = {"_meta": {"pegboard/server": owner}}
        found |= {
            "narrow list": client.request("tools/list", meta),
            "narrow prompts": client.request("prompts/list", meta),
            "narrow resources": client.request("resources/list", meta),
            "unknown method": client.request("toy/unheard", {"some": 1, **meta}),
        }
    if prompt:
        found |= {
            "prompt": client.request("prompts/get", {"name": prompt, "arguments": {"who": "me"}}),
            "read": client.request("resources/read", {"uri": f"{uri}/text"}),
            "item": client.request("resources/read", {"uri": f"{uri}/item/7"}),
            "complete a prompt": client.request("completion/complete", completion("ref/prompt", name=prompt)),
            "complete a template": client.request(
                "completion/complete", completion("ref/resource", uri=f"{uri}/item/{{id}}")
            ),
        }
        if not client.modern:
            found["subscribe"] = client.request("resources/subscribe", {"uri": f"{uri}/text"})
    return {name: await outcome(work) for name, work in found.items()}


def completion(kind: str, **ref: str) -> dict[str, Any]:
    return {"ref": {"type": kind, **ref}, "argument": {"name": "id", "value": "a"}}


def renamed(answers: dict[str, str], never: tuple[str, ...], hidden: tuple[str, ...]) -> dict[str, str]:
    """Answers about what never was, as if they had been about what is hidden."""
    pairs = sorted({pair for pair in zip(never, hidden, strict=True) if pair[0]}, key=lambda pair: -len(pair[0]))
    shown = dict(answers)
    for before, after in pairs:
        shown = {key: text.replace(before, after) for key, text in shown.items()}
    return shown


@pytest.mark.scenario("access: What a rule hides is as if it never was")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", CASES)
async def test_mcp_answers_as_if_it_never_was(tmp_path: Path, name: str, version: str) -> None:
    """Calls, the discovery tools, prompts, resources, completion, subscriptions and what nobody knows."""
    case = CASES[name]
    async with house(tmp_path, case) as (gateway, headers):
        async with http_client(gateway.mcp, version, headers=headers) as client:
            assert (await client.call(case.left, {})).get("isError") is not True
            about_hidden = await ask_everything(client, case.hidden)
            about_nothing = await ask_everything(client, case.never)
    assert about_hidden == renamed(about_nothing, case.never, case.hidden)


@pytest.mark.scenario("access: What a rule hides is as if it never was")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", CASES)
async def test_nothing_lists_it(tmp_path: Path, name: str, version: str) -> None:
    """Lists, search, instructions, capabilities and suggestions say nothing of it."""
    case = CASES[name]
    async with house(tmp_path, case) as (gateway, headers):
        address = f"{gateway.mcp}?expose=all"
        async with http_client(address, version, headers=headers) as client:
            said = [json.dumps(client.hello)]
            said += [json.dumps(await client.listed(kind)) for kind in ("tools", "prompts", "resources", "templates")]
            queries = ("wipe disks", "look at vault", "greet", "memory")
            said += [json.dumps(await client.call("tool_find", {"query": query, "limit": 50})) for query in queries]
            # What comes close to it is not suggested either.
            near = ("public__wip", "vault__wip", "vaul__wipe", "wipe")
            said += [(await outcome(client.call(close, {}))).replace(close, "…") for close in near]
    for text in said:
        # A search says back what was searched for.
        shown = re.sub(r'"query": "[^"]*"', "", text.replace("\\", ""))
        assert not re.search(case.words, shown), shown


REST_READS = ("/api/servers", "/api/tools", "/api/status", "/metrics", "/api/tools/search?q=wipe+disks+vault&limit=50")


@pytest.mark.scenario("access: What a rule hides is as if it never was")
@pytest.mark.parametrize("name", CASES)
async def test_rest_answers_as_if_it_never_was(tmp_path: Path, name: str) -> None:
    """Every route that lists or names servers and tools."""
    case = CASES[name]
    async with house(tmp_path, case) as (gateway, headers):
        async with httpx2.AsyncClient(base_url=gateway.url, headers=headers, timeout=LIMIT) as http:
            for path in REST_READS:
                text = re.sub(r'"query":"[^"]*"', "", (await http.get(path)).text)
                assert not re.search(case.words, text), (path, text)
            about_hidden = await ask_rest(http, case.hidden)
            assert about_hidden == renamed(await ask_rest(http, case.never), case.never, case.hidden)


async def ask_rest(http: httpx2.AsyncClient, names: tuple[str, str, str, str]) -> dict[str, str]:
    owner, tool, _, _ = names
    requests = {"describe": ("GET", f"/api/tools/{tool}"), "call": ("POST", f"/api/tools/{tool}/call")}
    if owner:
        requests |= {
            "of a server": ("GET", f"/api/tools?server={owner}"),
            "refresh": ("POST", f"/api/servers/{owner}/refresh"),
            "log": ("GET", f"/api/servers/{owner}/log"),
            "disable": ("POST", f"/api/servers/{owner}/disable"),
        }
    answers = {name: await http.request(method, path) for name, (method, path) in requests.items()}
    return {name: f"{answer.status_code} {answer.text}" for name, answer in answers.items()}


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_address_that_names_it_names_nothing(tmp_path: Path, version: str) -> None:
    """`?server=` of a hidden server is as that of one that is not there."""
    case = CASES["servers"]
    async with house(tmp_path, case) as (gateway, headers):
        said: list[str] = []
        for owner in ("vault", "voult"):
            async with http_client(f"{gateway.mcp}?server={owner}", version, headers=headers) as client:
                lists = [await client.listed(kind) for kind in ("tools", "prompts", "resources")]
                said.append(json.dumps([client.hello, lists]).replace("voult", "vault"))
    assert said[0] == said[1]


async def test_notices_are_about_what_is_seen(tmp_path: Path) -> None:
    """A change of a hidden server is no news; one of a server that is seen is."""
    case = CASES["servers"]
    async with house(tmp_path, case, "all") as (gateway, headers):
        async with http_client(gateway.mcp, headers=headers) as client, http_client(gateway.mcp) as owner:
            await client.tools()
            await owner.tools()
            await owner.call("vault__change", {"add": ["hidden_news"]})
            await owner.until_changes(1)
            assert client.changes() == 0
            await owner.call("public__change", {"add": ["news"]})
            await client.until_changes(1)
            assert "public__news" in await client.names()


@pytest.mark.scenario("access: A rule that changes holds at once")
async def test_a_rule_that_changes_holds_at_once(tmp_path: Path) -> None:
    """A session goes on under its principal's new rule, and is told that its lists changed."""
    rules = [{"who": ["token:somebody"], "servers": ["public", "vault"]}]
    own: dict[str, Any] = {"expose": "all", "toolsets": ["discovery"]}
    async with open_gateway(tmp_path, SERVERS, auth={"rules": rules}, **own) as gateway:
        await gateway.board.refresh()
        headers = await gateway.token()
        async with http_client(gateway.mcp, headers=headers) as client:
            assert "vault__look" in await client.names()
            narrower = [{"who": ["token:somebody"], "servers": ["public"]}]
            await gateway.configure(SERVERS, auth={"rules": narrower}, **own)
            with pytest.raises(RpcError, match="Unknown tool"):
                await client.call("vault__look", {})
            assert "vault__look" not in await client.names()
            await client.until_changes(1)
            await gateway.configure(SERVERS, auth={"rules": rules}, **own)
            assert (await client.call("vault__look", {})).get("isError") is not True


@pytest.mark.scenario("access: A rule that changes holds at once")
async def test_a_rule_that_changes_holds_for_the_user_of_this_machine(tmp_path: Path) -> None:
    """Who brings nothing, and was let in a moment ago with the same headers."""
    own: dict[str, Any] = {"expose": "all", "toolsets": []}
    look = {"name": "vault__look", "arguments": {}}
    async with open_gateway(tmp_path, SERVERS, **own) as gateway, httpx2.AsyncClient(timeout=LIMIT) as http:
        await gateway.board.refresh()
        for _ in range(2):
            assert "isError" not in (await ask_modern(http, gateway.mcp, {}, "tools/call", **look)).json()["result"]
        await gateway.configure(SERVERS, auth={"rules": [{"who": ["local"], "servers": ["public"]}]}, **own)
        assert "Unknown tool" in (await ask_modern(http, gateway.mcp, {}, "tools/call", **look)).text
        await gateway.configure(SERVERS, auth={"required": True}, **own)
        assert (await ask_modern(http, gateway.mcp, {}, "tools/call", **look)).status_code == 401


async def test_memory_is_limited_to_namespaces(tmp_path: Path) -> None:
    """Each principal has the namespaces of its rule; without a name the first of them is meant."""
    async with open_gateway(tmp_path, {}, toolsets=["discovery", "memory"]) as gateway:
        team = await gateway.token("team", namespaces=["team", "shared"])
        everybody = await gateway.token("everybody")
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:

            async def send(method: str, path: str, headers: dict[str, str], **body: Any) -> tuple[int, Any]:
                answer = await http.request(method, path, headers=headers, json=body or None)
                return answer.status_code, answer.json()

            assert (await send("POST", "/api/memories", everybody, key="a", text="of all"))[0] == 201
            assert (await send("POST", "/api/memories", team, key="b", text="of the team"))[0] == 201
            keys = [row["key"] for row in (await send("GET", "/api/memories", team))[1]["data"]["memories"]]
            assert keys == ["b"]
            assert (await send("GET", "/api/memories/a", team))[0] == 404
            for path in (
                "/api/memories/a?namespace=default",
                "/api/memories?namespace=nobody",
                "/api/memory/search?q=x&namespace=default",
            ):
                status, answer = await send("GET", path, team)
                assert (status, "none of yours" in answer["error"]["message"]) == (403, True)
            assert (await send("POST", "/api/memories?namespace=default", team, key="c", text="x"))[0] == 403
            assert (await send("GET", "/api/memories?namespace=shared", team))[0] == 200
        async with http_client(gateway.mcp, headers=team) as client:
            refused = await client.call("memory_get", {"key": "a", "namespace": "default"})
            assert refused["isError"] is True
            assert "of the team" in json.dumps(await client.call("memory_get", {"key": "b"}))


@pytest.mark.parametrize("bridge", [False, True], ids=["alone", "bridge"])
async def test_a_rule_for_the_local_user_holds_over_pipes(tmp_path: Path, bridge: bool) -> None:
    """`pegboard stdio` alone, and as a bridge to a gateway."""
    own: dict[str, Any] = {"auth": {"rules": [{"who": ["local"], "servers": ["public"]}]}}
    config = write_config(tmp_path / "pegboard.json", SERVERS, **own)
    with serving(config) if bridge else contextlib.nullcontext():
        async with stdio_client(config) as client:
            names = await client.until_listed(lambda names: "public__look" in names)
            assert "vault__look" not in names
            with pytest.raises(RpcError, match="Unknown tool"):
                await client.call("vault__look", {})


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("bridge", [False, True], ids=["alone", "bridge"])
async def test_a_rule_for_the_local_user_holds_over_pipes_that_are_open(
    tmp_path: Path, bridge: bool, version: str
) -> None:
    """From the next request on; a session is told that its lists changed without having asked."""
    config = write_config(tmp_path / "pegboard.json", SERVERS)
    narrow: dict[str, Any] = {"auth": {"rules": [{"who": ["local"], "servers": ["public"]}]}}
    with serving(config) if bridge else contextlib.nullcontext():
        async with stdio_client(config, version) as client:
            await client.until_listed(lambda names: "vault__look" in names)
            told = client.changes()
            write_config(config, SERVERS, **narrow)
            if version == "2025-11-25":
                await client.until_changes(told + 1)
            await client.until_listed(lambda names: "vault__look" not in names)
            with pytest.raises(RpcError, match="Unknown tool"):
                await client.call("vault__look", {})
            write_config(config, SERVERS)
            await client.until_listed(lambda names: "vault__look" in names)


@pytest.mark.both_paths
async def test_a_rule_for_anonymous_binds_whoever_says_nothing(tmp_path: Path) -> None:
    """Where nobody has to say who they are; `*` is for JWTs, and the machine's own user and tokens have their own."""
    rules = [{"who": ["*"], "servers": []}, {"who": ["anonymous"], "servers": ["public"], "rate": "2/h"}]
    own: dict[str, Any] = {"expose": "all", "toolsets": ["discovery"]}
    elsewhere = {"x-forwarded-for": "192.0.2.7"}
    async with open_gateway(tmp_path, SERVERS, auth={"required": False, "rules": rules}, **own) as gateway:
        await gateway.board.refresh()
        async with http_client(gateway.mcp, headers=elsewhere) as client:
            names = await client.names()
            assert "public__look" in names
            assert "vault__look" not in names
            for _ in range(2):
                assert (await client.call("public__look", {})).get("isError") is not True
            assert "RATE_LIMITED" in json.dumps(await client.call("public__look", {}))
            await gateway.configure(SERVERS, auth={"required": False}, **own)
            await client.until_changes(1)
            assert "vault__look" in await client.names()
        token = await gateway.token()
        for headers in ({}, {**elsewhere, **token}):
            async with http_client(gateway.mcp, headers=headers) as client:
                assert "vault__look" in await client.names()


async def test_headers_do_not_tell_of_a_hidden_tool(tmp_path: Path) -> None:
    """Whether `Mcp-Param-` headers fit a tool's schema is said of tools that are seen."""
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    marked = toy(name="vault", era="modern", raw_tools=[{"name": "marked", "inputSchema": schema}])
    async with open_gateway(tmp_path, {"vault": marked, "public": server("public")}) as gateway:
        await gateway.board.refresh()
        headers = await gateway.token(servers=["public"])
        said: list[str] = []
        for name in ("vault__marked", "voult__marked"):
            meta = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}
            params = {"name": name, "arguments": {"region": "north"}, "_meta": meta}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            sent = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28"}
            sent |= {"mcp-method": "tools/call", "mcp-name": name, "mcp-param-region": "south", **headers}
            async with httpx2.AsyncClient(timeout=LIMIT) as http:
                answer = await http.post(gateway.mcp, json=message, headers=sent)
            said.append(f"{answer.status_code} {answer.text}".replace("voult", "vault"))
    assert said[0] == said[1]


async def test_a_former_name_does_not_tell_of_a_hidden_tool(tmp_path: Path) -> None:
    """What `renamed` leads to is named to whoever sees it."""
    own: dict[str, Any] = {"renamed": {"old_wipe": "vault__wipe"}}
    async with open_gateway(tmp_path, SERVERS, **own) as gateway:
        await gateway.board.refresh()
        async with http_client(gateway.mcp, headers=await gateway.token(servers=["public"])) as client:
            with pytest.raises(RpcError) as caught:
                await client.call("old_wipe", {})
            assert "vault" not in caught.value.message
        async with http_client(gateway.mcp) as client:
            with pytest.raises(RpcError, match='it is called "vault__wipe" now'):
                await client.call("old_wipe", {})
