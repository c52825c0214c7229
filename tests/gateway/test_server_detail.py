"""One server over REST: its entry without secrets, its tools with those that are denied, a removal that is undone, and
the import of what clients have."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from harness import LIMIT, Entry, Gateway, http_client, open_gateway, toy

pytestmark = pytest.mark.anyio
SECRET = "tulip-tulip-tulip"


@asynccontextmanager
async def rest(
    tmp_path: Path, servers: dict[str, Entry], **own: Any
) -> AsyncGenerator[tuple[httpx2.AsyncClient, Gateway]]:
    async with (
        open_gateway(tmp_path, servers, **own) as gateway,
        httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
    ):
        yield http, gateway


async def send(http: httpx2.AsyncClient, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    answer = await http.request(method, path, json=body, headers=headers)
    said = answer.json()
    return answer.status_code, said["data"] if said["success"] else said["error"]["message"]


async def test_an_entry_is_shown_without_its_secrets(tmp_path: Path) -> None:
    """Of variables and headers only that they are set, and from which variable; what is to be copied has variables."""
    entry = {
        "url": f"https://example.com/mcp?api_key={SECRET}",
        "headers": {"Authorization": f"Bearer {SECRET}", "X-Team": "${TEAM}"},
        "oauth": {"clientId": "me", "clientSecret": SECRET},
        "enabled": False,
    }
    command = {
        "command": "x",
        "args": ["--token", f"ghp_{SECRET}{SECRET}"],
        "env": {"API_KEY": SECRET},
        "enabled": False,
    }
    async with rest(tmp_path, {"hosted": entry, "local": command}) as (http, _):
        status, hosted = await send(http, "GET", "/api/servers/hosted")
        assert status == 200
        assert hosted["entry"]["headers"] == {
            "Authorization": {"set": True},
            "X-Team": {"set": True, "from": "${TEAM}"},
        }
        assert hosted["copy"]["headers"] == {"Authorization": "${HOSTED_AUTHORIZATION}", "X-Team": "${TEAM}"}
        assert hosted["copy"]["oauth"]["clientId"] == "me"
        _, local = await send(http, "GET", "/api/servers/local")
        assert local["entry"]["env"] == {"API_KEY": {"set": True}}
        assert local["copy"]["env"] == {"API_KEY": "${API_KEY}"}
        assert SECRET not in json.dumps([hosted, local])
        assert (await send(http, "GET", "/api/servers/nobody"))[0] == 404


async def test_an_entry_in_words_of_others_is_shown_without_its_secrets(tmp_path: Path) -> None:
    """Under their keys, as a default of a variable, and with letters that no key has."""
    entry = {
        "serverUrl": f"http://127.0.0.1:9/mcp?key={SECRET}",
        "http_headers": {"Authorization": f"Bearer ${{NOSUCH:-{SECRET}}}"},
        "enabled": False,
    }
    command = {
        "cmd": "true",
        "arguments": ["--api-key", f"abc/{SECRET}/def", f"--password=pa$${SECRET}", f"postgres://u:{SECRET}@h/db;x"],
        "environment": {"HOOK": f"https://hooks.slack.com/services/T0/B0/{SECRET}", "B": f"${{A}}${{B:-{SECRET}}}"},
        "theirs": {"apiKey": SECRET},
        "enabled": False,
    }
    async with rest(tmp_path, {"hosted": entry, "local": command}) as (http, _):
        found = [(await send(http, "GET", f"/api/servers/{name}"))[1] for name in ("hosted", "local")]
        assert SECRET not in json.dumps(found)
        assert found[0]["entry"]["headers"] == {"Authorization": {"set": True, "from": "Bearer ${NOSUCH}"}}
        assert found[1]["entry"]["env"] == {"HOOK": {"set": True}, "B": {"set": True, "from": "${A}${B}"}}
        assert found[1]["copy"]["env"] == {"HOOK": "${LOCAL_HOOK}", "B": "${A}${B}"}


async def test_what_is_hidden_is_never_written(tmp_path: Path) -> None:
    """A change of what is shown is written where it stands, under whichever key, and the secrets beside it stay."""
    entry = {"cmd": "true", "arguments": ["--token", SECRET], "environment": {"A": SECRET, "B": "2"}, "enabled": False}
    async with rest(tmp_path, {"local": entry}) as (http, gateway):
        before = gateway.config.read_bytes()
        _, found = await send(http, "GET", "/api/servers/local")
        for changes in ({"args": found["entry"]["args"]}, {"env": found["entry"]["env"]}, {"env": {"A": "[redacted]"}}):
            assert (await send(http, "PATCH", "/api/servers/local", changes))[0] == 400
            assert gateway.config.read_bytes() == before
        status, _ = await send(http, "POST", "/api/servers", {"name": "two", "entry": found["entry"]})
        assert status == 400
        assert (await send(http, "PATCH", "/api/servers/local", {"env": {"B": None, "C": "3"}}))[0] == 200
        assert (await send(http, "PATCH", "/api/servers/local", {"command": "other"}))[0] == 200
        written = json.loads(gateway.config.read_text("utf-8"))["mcpServers"]["local"]
        assert written == {**entry, "cmd": "other", "environment": {"A": SECRET, "C": "3"}}


async def test_every_tool_is_told_with_whether_it_is_allowed(tmp_path: Path) -> None:
    """Also those that the entry denies, which nobody finds elsewhere; a change of one list leaves the rest alone."""
    servers = {"one": toy({"tools": {"deny": ["echo"]}}, name="one")}
    async with rest(tmp_path, servers) as (http, gateway):
        await send(http, "POST", "/api/servers/one/refresh", {})
        _, found = await send(http, "GET", "/api/servers/one")
        allowed = {tool["name"]: tool["allowed"] for tool in found["offers"]}
        assert allowed["echo"] is False
        assert sum(allowed.values()) == len(allowed) - 1
        assert all(tool["tokens"] > 0 for tool in found["offers"])
        status, _ = await send(
            http, "PATCH", "/api/servers/one", {"tools": {"deny": ["echo", "add"]}, "env": {"A": "1"}}
        )
        assert status == 200
        await send(http, "PATCH", "/api/servers/one", {"env": {"B": "2"}})
        await send(http, "PATCH", "/api/servers/one", {"env": {"A": None}, "tools": None})
        entry = json.loads(gateway.config.read_text("utf-8"))["mcpServers"]["one"]
        assert entry["env"] == {"B": "2"}
        assert "tools" not in entry
        assert entry["args"] == servers["one"]["args"]


async def test_whoever_is_no_admin_sees_no_entry(tmp_path: Path) -> None:
    """What a server offers is for all who may use it; how it is reached, and what is denied, for admins."""
    rules = [{"who": ["local"], "servers": ["one"]}]
    servers = {"one": toy({"env": {"TOKEN": SECRET}}, name="one"), "other": toy(name="other")}
    async with rest(tmp_path, servers, auth={"rules": rules}) as (http, _):
        status, found = await send(http, "GET", "/api/servers/one")
        assert status == 200
        assert {"entry", "copy", "offers"}.isdisjoint(found)
        assert found["prompts"] is not None
        assert (await send(http, "GET", "/api/servers/other"))[0] == 404
        assert (await send(http, "POST", "/api/servers/one/restore", {}))[0] == 403
        assert (await send(http, "GET", "/api/import"))[0] == 403


async def test_whoever_only_reads_is_told_of_tools_that_only_read(tmp_path: Path) -> None:
    """No row and no refresh says how many others a server has, or what they are called."""
    look = {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    wipe = {"name": "wipe", "inputSchema": {"type": "object"}}
    broken = {"name": "brush", "inputSchema": {"type": "string"}}
    async with rest(tmp_path, {"one": toy(name="one", raw_tools=[look, wipe, broken])}) as (http, gateway):
        reader, other = await gateway.token("reader", readOnly=True), await gateway.token("other")
        counts: list[int] = []
        for headers in (other, reader):
            _, refreshed = await send(http, "POST", "/api/servers/one/refresh", {}, **headers)
            _, tools = await send(http, "GET", "/api/tools", **headers)
            _, one = await send(http, "GET", "/api/servers/one", **headers)
            _, found = await send(http, "GET", "/api/servers", **headers)
            counts.append(len([tool for tool in tools["tools"] if tool["server"] == "one"]))
            assert refreshed == {"registered": counts[-1]}
            assert [one["tools"], found["servers"][0]["tools"]] == [counts[-1]] * 2
            assert ("brush" in json.dumps([one, found])) is (headers is other)
        assert 0 < counts[1] < counts[0]


async def test_a_removal_is_undone_byte_for_byte(tmp_path: Path) -> None:
    """Comments, order and secrets are as before; nothing of that was ever sent."""
    async with rest(tmp_path, {"one": toy(name="one")}) as (http, gateway):
        first = '  // mine\n  "first": {"command": "x", "env": {"TOKEN": "%s"}}, // why\n'
        text = '{"mcpServers": {\n' + first + '  "second": {"command": "y"},\n}}\n'
        gateway.config.write_text(text % SECRET, "utf-8")
        before = gateway.config.read_bytes()
        await gateway.front.config.reload()
        status, said = await send(http, "DELETE", "/api/servers/first")
        assert status == 200
        assert SECRET not in json.dumps(said)
        assert (await send(http, "GET", "/api/servers/first"))[0] == 404
        status, row = await send(http, "POST", "/api/servers/first/restore", {})
        assert (status, row["name"]) == (200, "first")
        assert gateway.config.read_bytes() == before
        status, words = await send(http, "POST", "/api/servers/first/restore", {})
        assert status == 404
        assert "nothing is kept" in words


async def test_a_removal_is_undone_beside_other_changes(tmp_path: Path) -> None:
    """What somebody changed meanwhile stays; a name that is taken again is not overwritten."""
    async with rest(tmp_path, {"one": toy(name="one"), "two": toy(name="two")}) as (http, gateway):
        one = json.loads(gateway.config.read_text("utf-8"))["mcpServers"]["one"]
        await send(http, "DELETE", "/api/servers/one")
        await send(http, "PATCH", "/api/servers/two", {"timeout": 7})
        assert (await send(http, "POST", "/api/servers/one/restore", {}))[0] == 200
        servers = json.loads(gateway.config.read_text("utf-8"))["mcpServers"]
        assert servers["one"] == one
        assert servers["two"]["timeout"] == 7
        await send(http, "DELETE", "/api/servers/two")
        await send(http, "POST", "/api/servers", {"name": "two", "entry": {"command": "other"}})
        status, words = await send(http, "POST", "/api/servers/two/restore", {})
        assert status == 409
        assert "already" in words


async def test_what_clients_have_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shown first, without secrets and without a change; then those that are named, or all."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home/.cursor").mkdir(parents=True)
    theirs = {"alpha": {"command": "a", "env": {"API_KEY": SECRET}}, "beta": {"url": "https://example.com/mcp"}}
    (tmp_path / "home/.cursor/mcp.json").write_text(json.dumps({"mcpServers": theirs}), "utf-8")
    async with rest(tmp_path, {}) as (http, gateway):
        before = gateway.config.read_bytes()
        status, found = await send(http, "GET", "/api/import")
        assert status == 200
        assert [(row["name"], row["from"], row["outcome"]) for row in found["servers"]] == [
            ("alpha", "Cursor", "new"),
            ("beta", "Cursor", "new"),
        ]
        assert SECRET not in json.dumps(found)
        assert gateway.config.read_bytes() == before
        assert (await send(http, "POST", "/api/import", {"names": ["gamma"]}))[0] == 400
        assert (await send(http, "POST", "/api/import", {"names": "alpha"}))[0] == 400
        status, said = await send(http, "POST", "/api/import", {"names": ["alpha"]})
        assert status == 201
        assert [row["name"] for row in said["added"]] == ["alpha"]
        assert list(json.loads(gateway.config.read_text("utf-8"))["mcpServers"]) == ["alpha"]
        await send(http, "POST", "/api/import")
        assert list(json.loads(gateway.config.read_text("utf-8"))["mcpServers"]) == ["alpha", "beta"]


async def test_a_part_of_the_tools_is_asked_for(tmp_path: Path) -> None:
    """By words, in an order, from a place on; with how many there are and what all of them cost."""
    async with rest(tmp_path, {"one": toy(name="one")}) as (http, _):
        await send(http, "POST", "/api/servers/one/refresh", {})
        _, every = await send(http, "GET", "/api/tools")
        names = [tool["name"] for tool in every["tools"]]
        _, part = await send(http, "GET", "/api/tools?limit=2&offset=1")
        assert [tool["name"] for tool in part["tools"]] == names[1:3]
        assert part["total"] == every["total"] == len(names)
        assert part["tokens"] == sum(tool["tokens"] for tool in every["tools"])
        _, heavy = await send(http, "GET", "/api/tools?order=tokens")
        costs = [tool["tokens"] for tool in heavy["tools"]]
        assert costs == sorted(costs, reverse=True)
        _, ordered = await send(http, "GET", "/api/tools?order=server")
        assert [tool["name"] for tool in ordered["tools"]] == sorted(
            names, key=lambda name: (not name.startswith("one__"), names.index(name))
        )
        _, found = await send(http, "GET", "/api/tools?words=ECHO")
        assert 0 < found["total"] < len(names)
        assert all("echo" in (tool["name"] + tool["description"]).lower() for tool in found["tools"])
        assert (await send(http, "GET", "/api/tools?order=size"))[0] == 400
        assert (await send(http, "GET", "/api/tools?limit=x"))[0] == 400


async def test_what_is_chosen_of_two_with_one_name_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two clients may have a server of the same name each: the file tells them apart."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    files = {".cursor/mcp.json": "a", ".codeium/windsurf/mcp_config.json": "b"}
    for name, command in files.items():
        (tmp_path / "home" / name).parent.mkdir(parents=True, exist_ok=True)
        entry = {"command": command, "env": {"KEY": "YOUR_API_KEY", "OTHER": "mine"}}
        (tmp_path / "home" / name).write_text(json.dumps({"mcpServers": {"time": entry}}), "utf-8")
    async with rest(tmp_path, {}) as (http, gateway):
        found = (await send(http, "GET", "/api/import"))[1]["servers"]
        assert [(row["name"], row.get("other"), row.get("taken")) for row in found] == [
            ("time", None, None),
            ("time_2", "time", None),
        ]
        assert all(row["missing"] and row["placeholders"] == ["env KEY"] for row in found)
        second = {"file": found[1]["file"], "name": "time"}
        for wrong in ([], "time", [{"name": "time"}], [{**second, "name": "other"}], [{**second, "x": 1}]):
            assert (await send(http, "POST", "/api/import", {"servers": wrong}))[0] == 400
        assert (await send(http, "POST", "/api/import", {"servers": [second], "names": ["time"]}))[0] == 400
        status, said = await send(http, "POST", "/api/import", {"servers": [second]})
        assert (status, [row["name"] for row in said["added"]]) == (201, ["time"])
        servers = json.loads(gateway.config.read_text("utf-8"))["mcpServers"]
        assert (
            servers["time"]["command"]
            == json.loads(Path(second["file"]).read_text("utf-8"))["mcpServers"]["time"]["command"]
        )
        # The other one is offered under another name, since the config has that one now.
        again = (await send(http, "GET", "/api/import"))[1]["servers"]
        assert [row.get("taken") for row in again if row["outcome"] == "renamed"] == [True]


HIDDEN_TOOL = {
    "name": "hid_tool",
    "inputSchema": {"type": "object", "properties": {"tulip_param": {"type": "nonsense"}}},
}


async def test_whoever_is_denied_one_tool_is_told_nothing_of_it(tmp_path: Path) -> None:
    """Neither its name nor its schema where Pegboard rejects it, nor that it counts, nor words of the server about all
    of its tools."""
    server = toy(tools=["a", "hid_too"], raw_tools=[HIDDEN_TOOL], instructions="tulip: use hid_tool")
    own = {"toolsets": ["discovery"], "expose": "all"}
    async with rest(tmp_path, {"e2": server, "other": toy(instructions="tulip")}, **own) as (http, gateway):
        await gateway.board.discover_all_tools()
        gateway.board.servers["e2"].last_error = "hid_tool failed"
        _, whole = await send(http, "GET", "/api/servers/e2")
        assert "hid_tool" in whole["rejected"]
        denied = await gateway.token("w", servers=["e2", "other"], tools={"deny": ["e2__hid_too*"]})
        allowed = await gateway.token("x", servers=["e2"], tools={"allow": ["e2__[!h]*"]})
        _, other = await send(http, "GET", "/api/servers/other", **denied)
        for token in (denied, allowed):
            listed = (await send(http, "GET", "/api/tools?server=e2", **token))[1]["tools"]
            _, row = await send(http, "GET", "/api/servers/e2", **token)
            assert row["tools"] == len(listed) == whole["tools"] - 1
            said = [row, (await send(http, "GET", "/api/servers", **token))[1]["servers"][0]]
            said.append((await send(http, "GET", "/api/tools/e2__a", **token))[1])
            async with http_client(gateway.mcp, "2025-11-25", headers=token) as client:
                said.append(client.hello["instructions"].replace("other: tulip", ""))
            assert not [word for word in ("hid_", "tulip") if word in json.dumps(said)], said
    assert other["instructions"] == "tulip"


async def test_when_a_server_answered_last_does_not_tell_of_hidden_tools(tmp_path: Path) -> None:
    """Whoever sees a part of it sees when its tools were read."""
    async with rest(tmp_path, {"one": toy()}) as (http, gateway):
        await gateway.board.discover_all_tools()
        server = gateway.board.servers["one"]
        denied = await gateway.token("denied", tools={"deny": ["one__pid"]})
        for token in (denied, await gateway.token("reader", readOnly=True)):
            server.last_seen, server.latency = 1.0, 0.001
            before = (await send(http, "GET", "/api/servers/one", **token))[1]
            server.last_seen, server.latency = 9e9, 9.0
            after = (await send(http, "GET", "/api/servers/one", **token))[1]
            assert (before["lastSeen"], before["latencyMs"]) == (after["lastSeen"], after["latencyMs"])
            assert before["lastSeen"] > "2020"
