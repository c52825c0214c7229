"""A server whose lists depend on who has signed in: everybody is shown their own, on every surface."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from bearers import bearer_client, bearer_http, principal_of
from harness import RawClient, eventually
from oauth.authority import Authority, open_authority
from oauth.personal_server import PersonalServer, open_personal
from oauth.signed_in import SignedIn, open_signed_in
from pegboard.listing.view import Filter
from pegboard.servers.errors import RpcError
from servers.toy import Toy

pytestmark = pytest.mark.anyio

VERSIONS = ["2025-11-25", "2026-07-28"]
ERAS = ["handshake", "modern"]
# What may be seen of ada by nobody else: every name of hers alone has it.
SECRET = "azure"
KINDS = {"tools": "name", "prompts": "name", "resources": "uri", "resourceTemplates": "uriTemplate"}
METHODS = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
}


def same_tool(words: str, *, choices: list[str]) -> dict[str, Any]:
    """A tool that all have, with another definition for each."""
    schema = {"type": "object", "properties": {"place": {"enum": choices}}}
    return {"name": "visit", "description": words, "inputSchema": schema}


@dataclass
class Street:
    """A gateway, a server that each signs in to, and who lives there."""

    opened: SignedIn
    authority: Authority
    server: PersonalServer
    people: dict[str, Mapping[str, str]]

    async def move_in(self, name: str, *, signed_in: bool = True, **rule: Any) -> None:
        self.people[name] = await self.opened.gateway.token(name, **rule)
        if signed_in:
            await self.sign_in(name)

    async def sign_in(self, name: str) -> None:
        self.authority.user = name
        await self.opened.person("one", self.people[name]).sign_in()

    async def sign_out(self, name: str) -> None:
        await self.opened.person("one", self.people[name]).sign_out()

    def client(self, name: str, version: str = VERSIONS[0]) -> Any:
        return bearer_client(self.opened.gateway, self.people[name], version)

    def http(self, name: str) -> httpx2.AsyncClient:
        return bearer_http(self.opened.gateway, self.people[name])

    def holder(self, name: str) -> str:
        return principal_of(self.opened.gateway, self.people[name]).id


def furnish(server: PersonalServer) -> dict[str, Toy]:
    """What ada has and what bob has; both have what every toy has."""
    ada = server.add(
        "ada",
        tools=["azure_tool"],
        resource_uris=["notes://azure", "notes://both"],
        template_uris=["azure://{x}"],
        raw_tools=[same_tool("Visit azure places.", choices=["azure_bay"])],
    )
    ada.extra_prompts.append("azure_prompt")
    bob = server.add(
        "bob",
        tools=["brown_tool"],
        resource_uris=["notes://brown", "notes://both"],
        template_uris=["brown://{x}"],
        raw_tools=[same_tool("Visit brown places.", choices=["brown_hill"])],
    )
    bob.extra_prompts.append("brown_prompt")
    return {"ada": ada, "bob": bob}


@contextlib.asynccontextmanager
async def open_town(
    tmp_path: Path, authority: Authority, server: PersonalServer, expose: str = "all"
) -> AsyncGenerator[Street]:
    """A gateway before the server; nobody is there yet."""
    settings = {"auth": {"required": True}, "audit": {}, "expose": expose, "toolsets": ["discovery"]}
    async with open_signed_in(tmp_path, {}, **settings) as opened:
        await opened.gateway.configure({"one": server.entry}, **settings)
        yield Street(opened, authority, server, {})


@contextlib.asynccontextmanager
async def street(tmp_path: Path, era: str = "both", expose: str = "all") -> AsyncGenerator[Street]:
    """Ada and bob, who have signed in, and cyd, who has not."""
    with open_authority() as authority, open_personal(authority, era) as server:
        furnish(server)
        async with open_town(tmp_path, authority, server, expose) as town:
            await settle(town)
            yield town


async def settle(town: Street) -> None:
    """Have everybody move in, and wait until it is known what is whose."""
    for name in ("ada", "bob"):
        await town.move_in(name)
    await town.move_in("cyd", signed_in=False)
    board = town.opened.gateway.board
    find = board.discovery.own.find
    await eventually(lambda: all(find("one", town.holder(name)) for name in ("ada", "bob")))
    await eventually(lambda: {"one__azure_tool", "one__brown_tool"} <= {tool.name for tool in board.registry.all()})


async def list_everything(client: RawClient) -> dict[str, list[str]]:
    """The names of all kinds."""
    return {kind: [item[name] for item in (await client.request(METHODS[kind]))[kind]] for kind, name in KINDS.items()}


async def outcome(client: RawClient, method: str, params: Mapping[str, Any]) -> str:
    """What comes of a request, as text."""
    try:
        return json.dumps(await client.request(method, params))
    except RpcError as exc:
        return json.dumps([exc.code, exc.message, exc.data])


def own(found: list[str], *words: str) -> list[str]:
    return sorted(name for name in found if any(word in name for word in words))


@pytest.mark.scenario("sign-in: Everybody is shown what their own sign-in shows")
@pytest.mark.both_paths
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("era", ERAS)
async def test_lists_are_those_of_ones_own_sign_in(tmp_path: Path, version: str, era: str) -> None:
    """Tools, prompts, resources and templates are those that the server shows to whoever asks."""
    async with street(tmp_path, era) as town:
        async with town.client("ada", version) as ada, town.client("bob", version) as bob:
            hers, his = await list_everything(ada), await list_everything(bob)
            assert own(hers["tools"], "azure", "brown") == ["one__azure_tool"]
            assert own(his["tools"], "azure", "brown") == ["one__brown_tool"]
            assert own(hers["prompts"], "azure", "brown") == ["one__azure_prompt"]
            assert own(his["prompts"], "azure", "brown") == ["one__brown_prompt"]
            assert own(hers["resources"], "notes") == ["notes://azure", "notes://both"]
            assert own(his["resources"], "notes") == ["notes://both", "notes://brown"]
            assert own(hers["resourceTemplates"], "azure", "brown") == ["azure://{x}"]
            assert own(his["resourceTemplates"], "azure", "brown") == ["brown://{x}"]
            assert "one__echo" in hers["tools"]
            assert "one__echo" in his["tools"]
            # What they use is their own, too.
            assert await ada.text("one__azure_tool") == "ada:azure_tool"
            assert await bob.text("one__brown_tool") == "bob:brown_tool"
            for client, name in ((ada, "ada"), (bob, "bob")):
                read = await client.request("resources/read", {"uri": "notes://both"})
                assert read["contents"][0]["text"] == f"notes://both of {name}"
            read = await bob.request("resources/read", {"uri": "brown://7"})
            assert read["contents"][0]["text"] == "brown://7 of bob"
            assert (await ada.request("prompts/get", {"name": "one__azure_prompt"}))["messages"]
            ref = {"type": "ref/resource", "uri": "brown://{x}"}
            filled = await bob.request("completion/complete", {"ref": ref, "argument": {"name": "x", "value": ""}})
            assert "brown://{x}" in filled["completion"]["values"][0]


@pytest.mark.scenario("sign-in: Nobody is shown what only somebody else's sign-in shows")
@pytest.mark.both_paths
@pytest.mark.parametrize("version", VERSIONS)
async def test_what_one_alone_is_shown_is_nowhere_for_others(tmp_path: Path, version: str) -> None:
    """Neither whoever signed in nor whoever did not can find, describe, load, call, get, read or complete it, and it is
    answered as a name that never was."""
    async with street(tmp_path, expose="search") as town:
        for name in ("bob", "cyd"):
            async with town.client(name, version) as client, town.http(name) as http:
                for kind, names in (await list_everything(client)).items():
                    assert not own(names, SECRET), kind
                found = [
                    await client.text("tool_find", {"query": "azure visit places", "limit": 50}),
                    (await http.get("/api/tools")).text,
                    (await http.get("/api/tools/search", params={"q": "azure"})).text,
                    (await http.get("/api/servers")).text,
                ]
                assert not [text for text in found if SECRET in text]
                for method, there, never in asking():
                    said = await outcome(client, method, there)
                    expected = await outcome(client, method, never)
                    assert said.replace("azure", "azuro") == expected, (name, method)
                answers = [(await http.get(f"/api/tools/one__{tool}_tool")) for tool in ("azure", "azuro")]
                assert answers[0].status_code == answers[1].status_code
                assert answers[0].text.replace("azure", "azuro") == answers[1].text


def asking() -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Requests that name something of ada's, and the same with a name that nobody has."""

    def pair(method: str, params: dict[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
        return method, params, json.loads(json.dumps(params).replace("azure", "azuro"))

    argument = {"argument": {"name": "x", "value": ""}}
    return [
        pair("tools/call", {"name": "one__azure_tool", "arguments": {}}),
        pair("tools/call", {"name": "tool_call", "arguments": {"name": "one__azure_tool", "arguments": {}}}),
        pair("tools/call", {"name": "tool_describe", "arguments": {"name": "one__azure_tool"}}),
        pair("tools/call", {"name": "tool_load", "arguments": {"names": ["one__azure_tool"]}}),
        pair("prompts/get", {"name": "one__azure_prompt"}),
        pair("completion/complete", {"ref": {"type": "ref/prompt", "name": "one__azure_prompt"}, **argument}),
        pair("completion/complete", {"ref": {"type": "ref/resource", "uri": "azure://{x}"}, **argument}),
        pair("resources/read", {"uri": "notes://azure"}),
        pair("resources/read", {"uri": "azure://7"}),
    ]


@pytest.mark.scenario("sign-in: Everybody is shown what their own sign-in shows")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_definition_is_ones_own(tmp_path: Path, version: str) -> None:
    """Where two are shown the same tool with other words and another schema, each sees their own everywhere."""
    async with street(tmp_path, expose="search") as town:
        for name, words, other in (("ada", "azure", "brown"), ("bob", "brown", "azure")):
            async with town.client(name, version) as client, town.http(name) as http:
                described = await client.text("tool_describe", {"name": "one__visit"})
                loaded = await client.text("tool_load", {"names": ["one__visit"]})
                found = await client.text("tool_find", {"query": "visit places"})
                listed = json.dumps((await client.listed("tools"))["one__visit"])
                rest = [(await http.get(f"/api/tools{path}")).text for path in ("", "/one__visit")]
                for text in (described, loaded, found, listed, *rest):
                    assert f"Visit {words} places." in text
                    assert f"Visit {other} places." not in text


@pytest.mark.scenario("sign-in: Whoever has not signed in is shown what all have alike")
@pytest.mark.parametrize("version", VERSIONS)
async def test_whoever_has_not_signed_in_sees_what_all_have(tmp_path: Path, version: str) -> None:
    """They see the tools that everybody has, with the word that they have to sign in, whatever they call."""
    async with street(tmp_path) as town, town.client("cyd", version) as cyd, town.http("cyd") as http:
        names = (await list_everything(cyd))["tools"]
        assert "one__echo" in names
        # It is not the same for all.
        assert "one__visit" not in names
        rows = (await http.get("/api/servers")).json()["data"]["servers"]
        assert [(row["state"], row.get("needsLogin")) for row in rows] == [("needs_auth", True)]
        tools = (await http.get("/api/tools")).json()["data"]["tools"]
        assert {row["status"] for row in tools if row["server"] == "one"} == {"needs_auth"}
        for tool in ("one__echo", "one__azure_tool", "one__never"):
            answer = await cyd.call(tool)
            assert answer["isError"]
            assert "one wants a sign-in: sign in at http://" in answer["content"][0]["text"]


@pytest.mark.scenario("sign-in: A server is said to need a sign-in to whoever has none")
async def test_whoever_has_not_signed_in_is_told_so_before_they_list(tmp_path: Path) -> None:
    """The state of the server, the status of the gateway and a refresh say it at the first request, to the local user
    as to others; the count of tools is that of whoever asks."""
    with open_authority() as authority, open_personal(authority) as server:
        furnish(server)
        async with open_signed_in(tmp_path, {}) as opened:
            await opened.gateway.configure({"one": server.entry})
            authority.user = "ada"
            await opened.person("one", await opened.gateway.token("ada")).sign_in()
            await eventually(lambda: opened.gateway.board.registry.server("one"))
            api = f"{opened.gateway.url}/api"
            status = (await opened.http.get(f"{api}/status")).json()["data"]
            assert (status["needLogin"], status["servers"]) == (["one"], {"needs_auth": 1})
            [row] = (await opened.http.get(f"{api}/servers")).json()["data"]["servers"]
            assert (row["state"], row["needsLogin"]) == ("needs_auth", True)
            refused = (await opened.http.post(f"{api}/servers/one/refresh")).json()["error"]
            assert "one wants a sign-in: " in refused["message"]
            changed = (await opened.http.patch(f"{api}/servers/one", json={"timeout": 50})).json()["data"]
            assert changed["state"] == "needs_auth"
            await opened.person("one").sign_in()
            assert "needLogin" not in (await opened.http.get(f"{api}/status")).json()["data"]
            assert "error" not in (await opened.http.post(f"{api}/servers/one/refresh")).json()


@pytest.mark.scenario("sign-in: Nobody is shown what only somebody else's sign-in shows")
async def test_the_record_of_a_call_of_somebody_elses_tool_names_no_rule(tmp_path: Path) -> None:
    """No rule hides a tool that only somebody else's sign-in shows; the record says that there is none."""
    async with street(tmp_path) as town, town.client("bob") as bob:
        assert "Unknown tool" in await outcome(bob, "tools/call", {"name": "one__azure_tool", "arguments": {}})
        boss = await town.opened.gateway.token("boss", admin=True)
        async with bearer_http(town.opened.gateway, boss) as http:
            records = (await http.get("/api/calls", params={"tool": "one__azure_tool"})).json()["data"]["records"]
            assert [record["outcome"] for record in records] == ["refused:unknown_tool"]


@pytest.mark.scenario("sign-in: Everybody is shown what their own sign-in shows")
async def test_each_list_is_had_with_its_own_token(tmp_path: Path) -> None:
    """What the server was asked by each token is what its owner is shown; who signs in later changes nobody's list."""
    async with street(tmp_path) as town:
        town.server.add("cyd", tools=["cyan_tool"])
        async with town.client("ada") as ada, town.client("cyd") as cyd:
            before = await list_everything(ada)
            await town.sign_in("cyd")
            await cyd.until_in("tools", "one__cyan_tool")
            assert not own(await cyd.names(), "azure", "brown", "visit")
            assert await list_everything(ada) == before
            for name in ("ada", "bob", "cyd"):
                assert all(town.server.asked[name, method] for method in METHODS.values())
            await town.sign_out("bob")
            async with town.client("bob") as bob:
                await bob.until_listed(lambda names: "one__brown_tool" not in names)
                # It was known that it is not for all.
                assert not own(await bob.names(), "azure", "brown", "cyan", "visit")


@pytest.mark.scenario("sign-in: Whoever has just signed in is shown nobody else's list")
@pytest.mark.both_paths
@pytest.mark.parametrize("version", VERSIONS)
async def test_nobody_elses_list_is_shown_right_after_a_sign_in(tmp_path: Path, version: str) -> None:
    """From the moment that somebody has signed in, however long the server takes to list, all surfaces show what is
    their own or nothing of that server, and a call waits for it."""
    with open_authority() as authority, open_personal(authority) as server:
        furnish(server)
        async with open_town(tmp_path, authority, server) as town:
            await town.move_in("bob")
            await town.move_in("ada", signed_in=False)
            async with town.client("bob", version) as bob, town.client("ada", version) as ada, town.http("ada") as http:
                await bob.until_in("tools", "one__brown_tool")
                # Before she signs in, she is shown what is known.
                await ada.until_in("tools", "one__brown_tool")
                with server.hold_tools("ada"):
                    await town.sign_in("ada")
                    for seen in await look_everywhere(ada, http):
                        assert "brown" not in seen
                    assert server.asked["ada", "tools/list"]
                assert await ada.text("one__azure_tool") == "ada:azure_tool"
                await ada.until_in("tools", "one__azure_tool")
                for seen in await look_everywhere(ada, http):
                    assert "azure" in seen
                    assert "brown" not in seen


@pytest.mark.scenario("sign-in: Whoever has just signed in is shown nobody else's list")
async def test_the_first_list_after_a_sign_in_is_ones_own(tmp_path: Path) -> None:
    """Whoever asks at once is shown the list of their own sign-in, over REST as over MCP."""
    with open_authority() as authority, open_personal(authority) as server:
        furnish(server)
        async with open_town(tmp_path, authority, server) as town:
            await town.move_in("bob")
            await town.move_in("ada", signed_in=False)
            async with town.client("ada") as ada, town.http("ada") as http:
                await ada.until_in("tools", "one__brown_tool")
                await town.sign_in("ada")
                text = (await http.get("/api/tools", params={"server": "one"})).text
                assert "brown" not in text
                if "azure" not in text:
                    # A machine with much to do may take longer than REST waits.
                    await ada.until_in("tools", "one__azure_tool")


async def look_everywhere(client: RawClient, http: httpx2.AsyncClient) -> list[str]:
    """Everything that somebody is shown, by surface; each waits for a moment, all at once."""
    listed, found, tools, searched = await asyncio.gather(
        asyncio.gather(*(client.request(method) for method in METHODS.values())),
        client.text("tool_find", {"query": "azure brown visit", "limit": 50}),
        http.get("/api/tools", params={"server": "one"}),
        http.get("/api/tools/search", params={"q": "azure brown visit"}),
    )
    return [*map(json.dumps, listed), found, tools.text, searched.text]


@pytest.mark.scenario("sign-in: A change of somebody's own list is told to them alone")
async def test_a_change_is_told_to_whose_list_it_is(tmp_path: Path) -> None:
    """A tool that comes on one user's connection is in that user's list, and nobody else hears of it."""
    async with street(tmp_path, "handshake") as town:
        async with town.client("ada") as ada, town.client("bob") as bob:
            for client in (ada, bob):
                await list_everything(client)
            # Both streams to the server stand.
            await eventually(lambda: all(town.server.toys[name].standing for name in ("ada", "bob")))
            told = bob.changes()
            toy = town.server.toys["ada"].toy
            toy.extra_tools.append("azure_more")
            toy.broadcast({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            await ada.until_in("tools", "one__azure_more")
            await ada.until_changes(1)
            assert not own(await bob.names(), SECRET)
            assert bob.changes() == told


@pytest.mark.scenario("sign-in: Everybody is shown what their own sign-in shows")
async def test_equal_lists_are_kept_once(tmp_path: Path) -> None:
    """Whoever is shown the same shares the list, what is made of it and what is kept of it; a start has it again."""
    with open_authority() as authority, open_personal(authority) as server:
        people = [f"user{number}" for number in range(5)]
        for name in people:
            server.add(name).settings.name = "same"
        async with open_town(tmp_path, authority, server) as town:
            for name in people:
                await town.move_in(name)
            board = town.opened.gateway.board
            find = board.discovery.own.find
            await eventually(lambda: all(find("one", town.holder(name)) for name in people))
            assert len({id(find("one", town.holder(name))) for name in people}) == 1
            assert len({id(board.lists.view(_filter_of(town, name))) for name in people}) == 1
            assert board.registry.groups().keys() == {"one"}
            await town.opened.gateway.board.discovery.own.close()
            kept = [record.server for record in await board.storage.catalog.load()]
            assert len([name for name in kept if name.startswith("one list:")]) == 1


@pytest.mark.scenario("sign-in: Nobody is shown what only somebody else's sign-in shows")
async def test_a_start_knows_whose_each_list_is(tmp_path: Path) -> None:
    """After a restart everybody has their own list at once, without a question to the server."""
    with open_authority() as authority, open_personal(authority) as server:
        furnish(server)
        async with open_town(tmp_path, authority, server) as town:
            await settle(town)
            people = town.people
            async with town.client("ada") as ada, town.client("bob") as bob:
                before = {"ada": await list_everything(ada), "bob": await list_everything(bob)}
        server.asked.clear()
        async with open_town(tmp_path, authority, server) as town:
            town.people = people
            async with town.client("cyd") as cyd:
                names = await cyd.names()
                assert "one__echo" in names
                assert not own(names, "azure", "brown", "visit")
            for name, lists in before.items():
                async with town.client(name) as client:
                    assert await list_everything(client) == lists
            assert not [asked for asked in server.asked if asked[1] in METHODS.values()]


@pytest.mark.scenario("sign-in: Everybody is shown what their own sign-in shows")
async def test_a_rule_holds_for_ones_own_list(tmp_path: Path) -> None:
    """A rule of a token, and one of the config, take from what a sign-in shows, and never add to it."""
    async with street(tmp_path) as town:
        town.server.add("dan", tools=["dark_tool", "dear_tool"])
        await town.move_in("dan", tools={"deny": ["one__dark_*"]})
        async with town.client("dan") as dan:
            await dan.until_in("tools", "one__dear_tool")
            assert own(await dan.names(), "azure", "brown", "dark", "dear") == ["one__dear_tool"]
            entry = {**town.server.entry, "tools": {"deny": ["dear_tool"]}}
            settings = {"auth": {"required": True}, "expose": "all", "toolsets": ["discovery"]}
            await town.opened.gateway.configure({"one": entry}, **settings)
            assert "one__dear_tool" not in await dan.names()
            assert "one__echo" in await dan.names()


def _filter_of(town: Street, name: str) -> Filter:
    return Filter(access=principal_of(town.opened.gateway, town.people[name]).access)
