"""Records of the audit: one for every call, refusal and change, with who did it, and nothing secret."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from audit.readers import add_tokens, outcomes, records_of, token_client
from harness import LIMIT, MODERN, http_client, open_gateway, serving, stdio_client, toy, write_config
from pegboard.access.rule import Rule
from pegboard.audit.audit import Audit
from pegboard.board import Board
from pegboard.config import read_settings
from pegboard.gateway.fastpath.rules import PATIENCE
from pegboard.library.pegboard import Pegboard
from pegboard.servers.errors import RpcError

pytestmark = pytest.mark.anyio

ARGUMENTS = {"b": [1, 2.5, "ü"], "a": {"y": None, "x": True}}
# The same, written otherwise.
TURNED = {"a": {"x": True, "y": None}, "b": [1, 2.5, "ü"]}
FULL = {"_meta": {"progressToken": 1}}


async def test_ten_thousand_calls_of_two_principals_over_both_paths_are_ten_thousand_records(tmp_path: Path) -> None:
    """Each answer is its own, each call is recorded once as its own principal's, and all can be verified."""
    async with open_gateway(tmp_path, {"one": toy()}, audit={"arguments": "values"}) as gateway:
        tokens = add_tokens(gateway, red=Rule(), blue=Rule())
        async with token_client(gateway, tokens["red"]) as red, token_client(gateway, tokens["blue"], MODERN) as blue:
            await red.until_in("tools", "one__echo")
            await red.request("tools/call", {"name": "one__echo"})
            lanes = [(client, way) for client in (red, blue) for way in ({}, FULL)]

            async def call(number: int) -> None:
                client, way = lanes[number % len(lanes)]
                arguments = {"text": f"{number}"}
                answer = await client.request("tools/call", {"name": "one__echo", "arguments": arguments, **way})
                assert json.loads(answer["content"][0]["text"]) == arguments

            declined = gateway.board.metrics.declined.total()
            for start in range(0, 9_999, 101):
                await asyncio.gather(*map(call, range(start, min(start + 101, 9_999))))
            assert 4_900 < gateway.board.metrics.declined.total() - declined < 5_500
        records = await records_of(gateway)
        report = await gateway.board.audit.verify()
    assert len(records) == 10_000
    assert set(outcomes(records)) == {("one__echo", "ok")}
    assert len({record.id for record in records}) == 10_000
    assert len({record.args_digest for record in records}) == 10_000
    called = {int(json.loads(record.arguments)["text"]): record for record in records if record.arguments}
    assert sorted(called) == list(range(9_999))
    whose = {number: (record.principal, record.era) for number, record in called.items()}
    assert whose == {n: ("red", "handshake") if n % 4 < 2 else ("blue", "modern") for n in range(9_999)}
    assert report.fault is None
    assert report.records >= 10_000


@pytest.mark.scenario("audit: A record has who it was and nothing secret")
async def test_a_record_says_who_called_what_when_and_with_which_outcome(tmp_path: Path) -> None:
    """All that applies is there: principal, client, session, tool, time, sizes, trace, era, network."""
    async with open_gateway(tmp_path, {"one": toy()}, audit={}) as gateway:
        token = add_tokens(gateway, red=Rule())["red"]
        async with token_client(gateway, token) as client:
            await client.until_in("tools", "one__echo")
            await client.request("tools/call", {"name": "one__echo", "arguments": {"text": "x"}})
        (record,) = await records_of(gateway)
    row = record.to_dict()
    assert row["principal"]["name"] == "red"
    assert (row["client"], row["server"], row["tool"], row["outcome"]) == ("raw/0", "one", "one__echo", "ok")
    assert (row["era"], row["network"]) == ("handshake", "loopback")
    assert row["ms"] > 0
    assert row["argsBytes"] == len('{"text":"x"}')
    assert row["resultBytes"] > 20
    assert len(row["session"]) == 12
    assert len(row["trace"]) == 16
    assert len(row["argsDigest"]) == 64
    assert "arguments" not in row


@pytest.mark.scenario("audit: Every call is recorded wherever it comes in")
async def test_every_entrance_is_recorded(tmp_path: Path) -> None:
    """The fast path, the full path, `tool_call`, REST and our own tools give the same record of the same call."""
    own: dict[str, Any] = {"toolsets": ["discovery", "memory"], "audit": {}}
    echo = {"name": "one__echo", "arguments": ARGUMENTS}
    async with open_gateway(tmp_path, {"one": toy()}, **own) as gateway, http_client(gateway.mcp) as client:
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            await client.until_in("tools", "one__echo")
            await client.request("tools/call", echo)
            await client.request("tools/call", echo)
            await client.request("tools/call", {**echo, **FULL})
            await client.request("tools/call", {"name": "tool_call", "arguments": {**echo, "arguments": TURNED}})
            (await http.post("/api/tools/one__echo/call", json={"arguments": TURNED})).raise_for_status()
            (await http.post("/api/tools/memory_list/call", json={})).raise_for_status()
        records = await records_of(gateway)
    assert outcomes(records) == [*[("one__echo", "ok")] * 5, ("memory_list", "ok")]
    assert len({(record.args_digest, record.args_bytes, record.server) for record in records[:5]}) == 1
    assert [record.client for record in records[3:]] == ["raw/0", "REST", "REST"]


@pytest.mark.scenario("audit: What is read over REST is recorded, and is no call")
async def test_what_is_looked_at_over_rest_is_recorded_as_read(tmp_path: Path) -> None:
    """Whoever looks at memories, tasks, chats or tools leaves records of a kind of their own, also where it fails;
    numbers of calls, metrics and the stream of events are of calls alone. What a POST does stays a call."""
    paths = ("/api/memories?limit=3", "/api/memory/graph", "/api/tasks", "/api/chats", "/api/tools/search?q=add")
    toolsets = ["discovery", "memory", "tasks", "chats"]
    own: dict[str, Any] = {"toolsets": toolsets, "audit": {}, "workspace": str(tmp_path)}
    ended: list[str] = []
    async with open_gateway(tmp_path, {}, **own) as gateway:
        gateway.board.calls.on_end = lambda call: ended.append(call.tool)
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            for path in paths:
                await http.get(path)
            (await http.post("/api/memories", json={"key": "a", "summary": "s"})).raise_for_status()
            stats = (await http.get("/api/stats")).json()["data"]
            shown = (await http.get("/api/calls", params={"kind": "read"})).json()["data"]["records"]
        reads, calls = await records_of(gateway, "read"), await records_of(gateway)
        metrics = gateway.board.metrics.calls
    assert outcomes(reads) == [
        ("memory_list", "ok"),
        ("memory_list", "ok"),
        ("registry_list", "not_found"),
        ("copilot_chat_secretary_list_sessions", "ok"),
        ("tool_find", "ok"),
    ]
    assert reads[0].client == "REST"
    assert reads[0].args_digest
    assert reads[0].us >= 0
    assert [row["tool"] for row in reversed(shown)] == [record.tool for record in reads]
    assert outcomes(calls) == [("memory_add", "ok")] == [(tool, "ok") for tool in ended]
    assert stats["total"]["calls"] == 1
    assert dict(metrics) == {("pegboard", "ok"): 1}


@pytest.mark.scenario("audit: A record says how long a call took")
@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
async def test_a_record_has_all_of_the_time_that_a_call_took(tmp_path: Path, version: str) -> None:
    """A call that the fast path waits for and the full path goes on with took as long as both did."""
    async with open_gateway(tmp_path, {"one": toy()}, audit={}) as gateway:
        token = add_tokens(gateway, red=Rule())["red"]
        async with token_client(gateway, token, version) as client:
            await client.until_in("tools", "one__sleep")
            await client.request("tools/call", {"name": "one__echo"})
            await client.request("tools/call", {"name": "one__sleep", "arguments": {"seconds": PATIENCE + 0.1}})
        _, record = await records_of(gateway)
    assert (record.tool, record.outcome) == ("one__sleep", "ok")
    assert record.to_dict()["ms"] >= (PATIENCE + 0.1) * 1000


async def test_stdio_and_the_bridge_are_recorded(tmp_path: Path) -> None:
    """By a gateway that is a client's own process, and by one that runs already."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy()})
    async with stdio_client(config) as client:
        await client.until_in("tools", "one__echo")
        await client.request("tools/call", {"name": "one__echo", "arguments": {"text": "alone"}})
    with serving(config) as (_, url):
        async with stdio_client(config) as client:
            await client.until_in("tools", "one__echo")
            await client.request("tools/call", {"name": "one__echo", "arguments": {"text": "bridged"}})
        async with httpx2.AsyncClient(base_url=url.removesuffix("/mcp"), timeout=LIMIT) as http:
            answer = (await http.get("/api/calls", params={"kind": "call"})).json()
    assert [(row["tool"], row["network"]) for row in answer["data"]["records"]] == [("one__echo", "pipe")] * 2


@pytest.mark.scenario("audit: Every call is recorded wherever it comes in")
async def test_what_comes_to_nothing_is_recorded_with_the_reason(tmp_path: Path) -> None:
    """A tool's own error, a server's refusal, an unknown tool, one that a rule hides, a time limit."""
    servers = {"one": toy(), "two": toy(), "slow": toy({"timeout": 0.3})}
    async with open_gateway(tmp_path, servers, audit={}, toolsets=["discovery"]) as gateway:
        token = add_tokens(gateway, red=Rule(servers=("one", "slow")))["red"]
        async with token_client(gateway, token) as client:
            await client.until_in("tools", "one__echo")
            await client.until_in("tools", "slow__sleep")
            await client.request("tools/call", {"name": "one__fails"})
            for name in ("one__refuses", "none__such", "two__echo"):
                with pytest.raises(Exception, match=r"Unknown|no, thank you"):
                    await client.request("tools/call", {"name": name})
            await client.request("tools/call", {"name": "tool_call", "arguments": {"name": "two__echo"}})
            await client.request("tools/call", {"name": "slow__sleep", "arguments": {"seconds": 30}})
        records = await records_of(gateway)
    assert outcomes(records) == [
        ("one__fails", "tool_error"),
        ("one__refuses", "rpc_error"),
        ("none__such", "refused:unknown_tool"),
        ("two__echo", "refused:rule"),
        ("two__echo", "refused:rule"),
        ("slow__sleep", "timeout"),
    ]


@pytest.mark.scenario("audit: A record has who it was and nothing secret")
async def test_whoever_is_not_let_in_is_recorded(tmp_path: Path) -> None:
    """Without what they brought; one record for each try."""
    async with open_gateway(tmp_path, {}, audit={}, auth={"required": True}) as gateway:
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            await http.get("/api/servers")
            await http.get("/api/servers", headers={"authorization": "Bearer quokka-secret"})
            token = add_tokens(gateway, red=Rule())["red"]
            answer = await http.get("/api/audit/head", headers={"authorization": f"Bearer {token}"})
            assert answer.status_code == 403
        records = await records_of(gateway, "access")
    assert [(record.principal, record.outcome, record.detail) for record in records] == [
        ("anonymous", "refused:no_credentials", "GET /api/servers"),
        ("anonymous", "refused:invalid_token", "GET /api/servers"),
        ("red", "refused:forbidden", "GET /api/audit/head"),
    ]
    assert "quokka" not in repr(records)


async def test_a_token_that_is_over_is_recorded_by_its_name_and_one_that_is_wrong_as_a_claim(tmp_path: Path) -> None:
    """Nobody is the one who did something unless the secret is right; only then is the answer more than a no."""
    async with open_gateway(tmp_path, {}, audit={}, auth={"required": True}) as gateway:
        expired = (await gateway.token("old", expires_at=1.0))["authorization"]
        removed = (await gateway.token("gone"))["authorization"]
        live = (await gateway.token("live"))["authorization"]
        await gateway.board.storage.tokens.remove("gone")
        await gateway.load_tokens()
        said: list[str] = []
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:

            async def send(bearer: str) -> None:
                answer = await http.get("/api/servers", headers={"authorization": bearer})
                assert answer.status_code == 401
                said.append(answer.json()["error"]["message"])

            for bearer in (expired, removed, *(wrong(each) for each in (expired, removed, live))):
                await send(bearer)
            await send(f"Bearer pgb_{'0' * 12}_{'x' * 43}")
        records = await records_of(gateway, "access")
    assert [message.partition(";")[0] for message in said[:2]] == ["this token has expired", "this token was removed"]
    assert set(said[2:]) == {"the bearer token is not known here, or not any more"}
    assert [(record.principal, record.outcome, record.detail) for record in records] == [
        ("old", "refused:expired", "GET /api/servers"),
        ("gone", "refused:removed", "GET /api/servers"),
        ("anonymous", "refused:invalid_token", "GET /api/servers; claims to be token old"),
        ("anonymous", "refused:invalid_token", "GET /api/servers; claims to be token gone"),
        ("anonymous", "refused:invalid_token", "GET /api/servers; claims to be token live"),
        ("anonymous", "refused:invalid_token", "GET /api/servers; claims the unknown token id 000000000000"),
    ]
    assert not {bearer.rpartition("_")[2] for bearer in (expired, removed, live)} & set(repr(records).split("_"))


def wrong(bearer: str) -> str:
    """The same id with another secret."""
    return bearer[:-1] + ("A" if bearer[-1] != "A" else "B")


async def test_whom_others_claim_to_be_is_not_told_to_whoever_says_nothing(tmp_path: Path) -> None:
    """Where nobody has to say who they are, "anonymous" is many; an admin reads it."""
    async with open_gateway(tmp_path, {}, audit={}, auth={"required": False}) as gateway:
        live = (await gateway.token("live"))["authorization"]
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            await http.get("/api/servers", headers={"authorization": wrong(live)})
            elsewhere = await http.get("/api/calls?kind=access", headers={"x-forwarded-for": "192.0.2.7"})
            own = await http.get("/api/calls?kind=access")
    assert len(elsewhere.json()["data"]["records"]) == 1
    assert "live" not in elsewhere.text
    assert "claims to be token live" in own.text


async def test_changes_of_the_config_are_recorded(tmp_path: Path) -> None:
    """Which servers were added, removed, switched and changed, by whom, and that rules are others."""
    async with open_gateway(tmp_path, {"one": toy(), "two": toy()}, audit={}) as gateway:
        rules = {"auth": {"rules": [{"who": ["token:red"], "servers": ["one"]}]}}
        await gateway.configure({"one": toy({"timeout": 9}), "three": toy()}, audit={}, **rules)
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            (await http.post("/api/servers/three/disable")).raise_for_status()
        gateway.board.audit.note("token.added", detail="red")
        records = await records_of(gateway, None)
    told = [(record.kind, record.server, record.principal) for record in records]
    assert told == [
        ("gateway.started", "", "local"),
        ("server.changed", "one", "local"),
        ("server.added", "three", "local"),
        ("server.removed", "two", "local"),
        ("auth.changed", "", "local"),
        ("server.disabled", "three", "local"),
        ("token.added", "", "local"),
    ]


async def test_sessions_and_the_gateway_itself_begin_and_end_in_the_audit(tmp_path: Path) -> None:
    """A session by its digest, as in the records of its calls; the last record is that the gateway stopped."""
    async with open_gateway(tmp_path, {"one": toy()}, audit={}) as gateway:
        async with http_client(gateway.mcp) as client:
            await client.until_in("tools", "one__echo")
            await client.request("tools/call", {"name": "one__echo"})
    async with Board(read_settings(gateway.config, {})) as later:
        rows = await later.audit._store.page("", 100)
    assert [row[5] for row in rows] == [
        "gateway.started",
        "session.started",
        "call",
        "session.ended",
        "gateway.stopped",
    ]
    assert len({row[9] for row in rows[1:4]}) == 1
    assert rows[1][9] != ""


async def test_the_python_library_records_nothing(tmp_path: Path) -> None:
    """A program that calls tools by itself has no audit, whatever the config says."""
    path = write_config(tmp_path / "pegboard.json", {"one": toy()}, audit={"strict": True})
    async with Pegboard.from_config(path) as board:
        assert (await board.call("one__echo")).success
        audit: Audit = board._board.audit
        assert audit.recorder is None
        assert await audit._store.page("", 10) == []


async def test_without_an_audit_there_are_no_records_and_no_table_is_touched(tmp_path: Path) -> None:
    """`"audit": false` is off; switched on in a running gateway, it records from then on, and that it was."""
    async with open_gateway(tmp_path, {"one": toy()}, audit=False) as gateway, http_client(gateway.mcp) as client:
        await client.until_in("tools", "one__echo")
        await client.request("tools/call", {"name": "one__echo"})
        assert gateway.board.audit.recorder is None
        assert await records_of(gateway, None) == []
        await gateway.configure({"one": toy()}, audit=True)
        await client.request("tools/call", {"name": "one__echo"})
        await gateway.configure({"one": toy()}, audit=False)
        await client.request("tools/call", {"name": "one__echo"})
        kinds = [record.kind for record in await records_of(gateway, None)]
    assert kinds == ["audit.on", "config.changed", "call", "audit.off"]


@pytest.mark.scenario("audit: A record has who it was and nothing secret")
@pytest.mark.both_paths
async def test_a_result_is_known_by_its_size_alone(tmp_path: Path) -> None:
    """Nothing of a result or of an argument is kept, on either path."""
    async with open_gateway(tmp_path, {"one": toy()}, audit={}) as gateway, http_client(gateway.mcp) as client:
        await client.until_in("tools", "one__echo")
        answer = await client.request("tools/call", {"name": "one__echo", "arguments": {"text": "quokka"}})
        assert "quokka" in json.dumps(answer)
        (record,) = await records_of(gateway)
        # As its server sent it: blanks and what belongs to that hop count.
        assert 0 <= record.result_bytes - len(json.dumps(answer, separators=(",", ":"))) < 50
        await gateway.board.storage.database.empty_log()
        kept = (tmp_path / "state" / "pegboard.db").read_bytes()
    assert b"quokka" not in kept
    assert client.hello["protocolVersion"].encode() not in kept


@pytest.mark.scenario("audit: What is read of servers is recorded")
@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
@pytest.mark.parametrize("arguments", ["digest", "values"])
async def test_what_is_read_of_servers_is_recorded(tmp_path: Path, version: str, arguments: str) -> None:
    """Prompts, resources and whatever else reaches a server; what is put into a template is as private as arguments."""
    server = toy(name="one", features=["prompts", "resources", "completions"])
    async with open_gateway(tmp_path, {"one": server}, audit={"arguments": arguments}) as gateway:
        token = add_tokens(gateway, red=Rule())["red"]
        async with token_client(gateway, token, version) as client:
            await client.until_in("prompts", "one__greet")
            await client.until_in("resources", "toy://one/text")
            await client.request("prompts/get", {"name": "one__greet", "arguments": {"who": "Ada"}})
            await client.request("resources/read", {"uri": "toy://one/text"})
            await client.request("resources/read", {"uri": "toy://one/item/alice"})
            asked = {"ref": {"type": "ref/prompt", "name": "one__greet"}, "argument": {"name": "who", "value": "A"}}
            await client.request("completion/complete", asked)
            with pytest.raises(RpcError):
                await client.request("prompts/get", {"name": "one__nothing"})
            with pytest.raises(RpcError):
                await client.request("resources/read", {"uri": "other://nobody"})
        records = [each for each in await records_of(gateway, None) if each.kind in {"prompt", "resource", "request"}]
    assert {record.principal for record in records} == {"red"}
    assert {record.client for record in records} == {"raw/0"}
    item, other = ("toy://one/item/alice", "other://nobody") if arguments == "values" else ("toy:…", "other:…")
    assert [(each.kind, each.server, each.tool, each.outcome) for each in records] == [
        ("prompt", "one", "one__greet", "ok"),
        ("resource", "one", "toy://one/text", "ok"),
        ("resource", "one", item, "ok"),
        ("request", "one", "", "ok"),
        ("prompt", "", "", "rpc_error"),
        # The only one that has resources is asked.
        ("resource", "one", other, "rpc_error"),
    ]
    assert records[3].detail == "completion/complete"
    assert arguments == "values" or "alice" not in repr(records)
