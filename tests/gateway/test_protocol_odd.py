"""What Pegboard never heard of, log lines between clients, and what one era may say and the other not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness import http_client, open_gateway, seen, toy, unstamped, until_seen
from pegboard.protocol.eras import RELATED_TASK_KEY
from pegboard.servers.errors import RpcError
from servers.toy import FEATURES

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]

ERAS = ("handshake", "modern")
VERSIONS = ("2025-11-25", "2026-07-28")
NEWS = "notifications/toy/news"
LINE = "notifications/message"


def full(name: str, era: str = "handshake", **more: Any) -> dict[str, Any]:
    """A toy that offers everything."""
    return toy(name=name, era=era, features=FEATURES, **more)


def own(name: str, era: str) -> dict[str, Any]:
    """The same with a process for each session, so that what it says can be told apart."""
    return {**full(name, era), "instance": "session"}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("era", ERAS)
async def test_an_unknown_method_goes_to_the_only_server_in_view(tmp_path: Path, era: str, version: str) -> None:
    """With `/mcp?server=one` there is nothing to ask about: `one` gets it, and its answer is exact."""
    async with open_gateway(tmp_path, {"one": full("one", era), "two": full("two", era)}) as gateway:
        async with http_client(f"{gateway.mcp}?server=one", version) as client:
            await client.until_in("tools", "one__seen")
            result = unstamped(await client.request("toy/shout", {"a": [None], "big": 2**80}), client)
            sent = {key: value for key, value in result["shouted"].items() if key != "_meta"}
            assert (result["by"], result["big"], sent) == ("one", 2**80, {"a": [None], "big": 2**80})
            await client.notify("notifications/toy/whisper", {"a": None})
            if client.can_notify:
                told = "notifications/toy/whisper"
                await until_seen(client, "one", lambda now: told in [method for method, _ in now["notes"]])


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_unknown_method_without_an_address_is_told_how_to_give_one(tmp_path: Path, version: str) -> None:
    """-32601, and the message names the key that says whom it is for; a notice is dropped, and all goes on."""
    async with open_gateway(tmp_path, {"one": full("one"), "two": full("two")}) as gateway:
        async with http_client(gateway.mcp, version) as client:
            await client.until_in("tools", "one__seen")
            await client.until_in("tools", "two__seen")
            for method, params in (("toy/shout", {"a": 1}), ("tasks/get", {"taskId": "nobody's"})):
                with pytest.raises(RpcError) as refused:
                    await client.request(method, params)
                assert refused.value.code == -32601
                assert "pegboard/server" in refused.value.message
            await client.notify("notifications/toy/whisper", {"a": 1})
            for server in ("one", "two"):
                now = await seen(client, server)
                assert "toy/shout" not in now["requests"]
                assert "notifications/toy/whisper" not in now["requests"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_unknown_method_that_the_server_does_not_know_either(tmp_path: Path, version: str) -> None:
    """The server's own error comes back; a server that does not exist is an error that names it."""
    async with open_gateway(tmp_path, {"one": full("one")}) as gateway, http_client(gateway.mcp, version) as client:
        await client.until_in("tools", "one__seen")
        with pytest.raises(RpcError, match="Method not found: toy/nothing") as unknown:
            await client.request("toy/nothing", {"_meta": {"pegboard/server": "one"}})
        assert unknown.value.code == -32601
        with pytest.raises(RpcError, match="nobody"):
            await client.request("toy/shout", {"_meta": {"pegboard/server": "nobody"}})


async def test_a_task_of_one_client_is_no_address_for_another(tmp_path: Path) -> None:
    """A `taskId` leads to its server only for the client that got it, whatever the others guess."""
    async with open_gateway(tmp_path, {"one": full("one"), "two": full("two")}) as gateway:
        async with http_client(gateway.mcp) as owner, http_client(gateway.mcp) as other:
            await owner.until_in("tools", "two__start_task")
            task = (await owner.call("two__start_task"))["task"]["taskId"]
            assert (await owner.request("tasks/get", {"taskId": task}))["by"] == "two"
            with pytest.raises(RpcError):
                await other.request("tasks/get", {"taskId": task})


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_tasks_of_a_shared_server_are_their_clients_own(tmp_path: Path, version: str) -> None:
    """With one server there is no doubt where a task is, and still it is unknown to whoever did not start it."""
    async with open_gateway(tmp_path, {"one": full("one")}) as gateway:
        async with http_client(gateway.mcp, version) as owner, http_client(gateway.mcp) as other:
            await owner.until_in("tools", "one__start_task")
            task = (await owner.call("one__start_task"))["task"]["taskId"]
            theirs = (await other.call("one__start_task"))["task"]["taskId"]
            for meta in ({}, {"_meta": {"pegboard/server": "one"}}):
                assert (await owner.request("tasks/get", {"taskId": task, **meta}))["by"] == "one"
                for method in ("tasks/get", "tasks/result", "tasks/cancel", "tasks/update"):
                    with pytest.raises(RpcError, match="Unknown task") as unknown:
                        await other.request(method, {"taskId": task, **meta})
                    assert unknown.value.code == -32602
                    with pytest.raises(RpcError, match="Unknown task"):
                        await other.request(method, {"taskId": [task], **meta})
            for client, mine in ((owner, task), (other, theirs)):
                listed = await client.request("tasks/list")
                assert [each["taskId"] for each in listed["tasks"]] == [mine]
                assert listed["nextCursor"] == "more"


@pytest.mark.parametrize("version", VERSIONS)
async def test_nothing_about_another_clients_task_reaches_its_server(tmp_path: Path, version: str) -> None:
    """No method and no notification, wherever the id of the task stands."""
    async with (
        open_gateway(tmp_path, {"one": full("one")}) as gateway,
        http_client(gateway.mcp) as owner,
        http_client(gateway.mcp, version) as other,
    ):
        await owner.until_in("tools", "one__start_task")
        task = {"taskId": (await owner.call("one__start_task"))["task"]["taskId"]}
        related = {"_meta": {RELATED_TASK_KEY: task}}
        call = {"name": "one__linked", "arguments": {}}
        tries = [
            *((method, task) for method in ("toy/shout", "task/get", "tasks/delete")),
            ("toy/shout", related),
            *(("tools/call", {**call, **more}) for more in (related, {"task": {"ttl": 1, **task}}, task)),
            ("prompts/get", {"name": "one__greet", **related}),
            ("resources/read", {"uri": "toy://one/text", **related}),
        ]
        before = await seen(owner, "one")
        for method, params in tries:
            with pytest.raises(RpcError):
                await other.request(method, params)
        if other.can_notify:
            for method in ("notifications/tasks/status", "notifications/toy/news"):
                await other.notify(method, task)
                await other.notify(method, related)
        after = await seen(owner, "one")
        assert after["calls"] == before["calls"] + 1
        assert {method for method, _ in tries} & set(after["requests"]) == {"tools/call"}
        assert not any("toy" in method or "tasks" in method for method, _ in after["notes"])
        assert (await owner.request("toy/shout", task))["shouted"] == task
        await owner.request("tools/call", {**call, **related})
        assert (await seen(owner, "one"))["meta"]["tools/call"][RELATED_TASK_KEY] == task


@pytest.mark.parametrize("era", ERAS)
async def test_an_unknown_notice_reaches_the_client_of_its_call_alone(tmp_path: Path, era: str) -> None:
    """What a server says during a call is meant for whoever called, where it can be told who that was."""
    async with open_gateway(tmp_path, {"one": own("one", era)}) as gateway:
        async with (
            http_client(gateway.mcp) as old,
            http_client(gateway.mcp, "2026-07-28") as modern,
            http_client(gateway.mcp) as bystander,
        ):
            await old.until_in("tools", "one__whisper")
            for client in (old, modern):
                await client.call("one__whisper", {"who": client.version})
                assert [said["who"] for said in await client.until_heard(NEWS)] == [client.version]
            assert [len(client.said(NEWS)) for client in (old, modern, bystander)] == [1, 1, 0]


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_servers_can_do_is_announced(tmp_path: Path, version: str) -> None:
    """Unknown capabilities, extensions and experiments of the servers are ours once the catalog knows them."""
    one = {
        "toy/loud": {"decibel": 2**70, "none": None},
        "extensions": {"com.example/one": {"a": [None]}},
        "experimental": {"x": {"y": 1}},
    }
    two = {"extensions": {"com.example/two": {}}}
    servers = {"one": full("one", capabilities=one), "two": full("two", "modern", capabilities=two)}
    async with open_gateway(tmp_path, servers) as gateway:
        async with http_client(gateway.mcp, version) as first:
            await first.until_in("tools", "one__seen")
            await first.until_in("tools", "two__seen")
        async with http_client(gateway.mcp, version) as client:
            announced = client.hello["capabilities"]
            assert announced["toy/loud"] == one["toy/loud"]
            assert announced["extensions"]["com.example/one"] == {"a": [None]}
            assert announced["extensions"]["com.example/two"] == {}
            assert announced["experimental"]["x"] == {"y": 1}
            assert announced["tools"]["listChanged"] is True
            assert announced["prompts"]["listChanged"] is True
            assert announced["resources"] == {"subscribe": True, "listChanged": True}
            assert {"completions", "logging"} <= set(announced)


@pytest.mark.parametrize("era", ERAS)
async def test_log_lines_reach_the_client_of_their_call_alone(tmp_path: Path, era: str) -> None:
    """Each of three clients wants another level; none gets another one's lines."""
    async with open_gateway(tmp_path, {"one": own("one", era)}) as gateway:
        async with (
            http_client(gateway.mcp) as chatty,
            http_client(gateway.mcp) as calm,
            http_client(gateway.mcp, "2026-07-28", log_level="error") as modern,
        ):
            await chatty.until_in("tools", "one__log")
            await chatty.request("logging/setLevel", {"level": "debug"})
            await calm.request("logging/setLevel", {"level": "warning"})
            # Of the lowest that anybody wants every server hears, now and whenever it is connected again.
            assert gateway.board.servers["one"]._connections.level == "debug"
            clients = {"chatty": chatty, "calm": calm, "modern": modern}
            for name, client in clients.items():
                for level in ("debug", "warning", "error"):
                    await client.call("one__log", {"level": level, "data": name})
            for name, levels in {
                "chatty": ["debug", "warning", "error"],
                "calm": ["warning", "error"],
                "modern": ["error"],
            }.items():
                said = await clients[name].until_heard(LINE, len(levels))
                assert [(line["data"], line["level"]) for line in said] == [(name, level) for level in levels]


async def test_a_level_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    """-32602 from the gateway itself."""
    async with open_gateway(tmp_path, {"one": full("one")}) as gateway, http_client(gateway.mcp) as client:
        with pytest.raises(RpcError) as refused:
            await client.request("logging/setLevel", {"level": "whispering"})
        assert refused.value.code == -32602


@pytest.mark.parametrize("version", VERSIONS)
async def test_output_that_is_no_object_is_for_modern_clients(tmp_path: Path, version: str) -> None:
    """Others could not read such a schema, nor such structured content: they get the tool and the text without it."""
    listing = {
        "name": "numbers",
        "description": "Numbers.",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "array", "items": {"type": "integer"}},
    }
    plain = {
        **listing,
        "name": "plain",
        "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
    }
    text = [{"type": "text", "text": "[1]"}]
    results = {
        "numbers": {"content": text, "structuredContent": [2**80], "isError": False},
        "plain": {"content": text, "structuredContent": {"n": 1}},
    }
    entry = toy(era="modern", raw_tools=[listing, plain], results=results)
    async with open_gateway(tmp_path, {"one": entry}) as gateway, http_client(gateway.mcp, version) as client:
        tools = await client.until_in("tools", "one__numbers")
        numbers = unstamped(await client.call("one__numbers"), client)
        if client.modern:
            assert tools["one__numbers"] == {**listing, "name": "one__numbers"}
            assert numbers == results["numbers"]
        else:
            without = {key: value for key, value in listing.items() if key != "outputSchema"}
            assert tools["one__numbers"] == {**without, "name": "one__numbers"}
            assert numbers == {"content": text, "isError": False}
        assert tools["one__plain"] == {**plain, "name": "one__plain"}
        assert unstamped(await client.call("one__plain"), client) == results["plain"]
