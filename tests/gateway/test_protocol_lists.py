"""Prompts, resources and templates of several servers in one list, and who is told what of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from harness import (
    LIMIT,
    LISTS,
    SERVER_INFO_KEY,
    RawClient,
    eventually,
    http_client,
    open_gateway,
    seen,
    toy,
    until_seen,
)
from loopwatch import loopwatch
from pegboard.sdk.server import MAX_FOLLOWED
from pegboard.servers.errors import RpcError
from servers.toy import FEATURES, prompt, resource, template

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]

ERAS = ("handshake", "modern")
VERSIONS = ("2025-11-25", "2026-07-28")
SHARED, ALIAS = "shared://one", "pegboard://second/shared://one"
UPDATED = "notifications/resources/updated"


def full(name: str, era: str = "handshake", **more: Any) -> dict[str, Any]:
    """A toy that offers everything."""
    return toy(name=name, era=era, features=FEATURES, **more)


def rivals(era: str) -> dict[str, Any]:
    """Two servers that offer the same URIs."""
    same: dict[str, Any] = {"resource_uris": [SHARED], "template_uris": ["shared://item/{id}"]}
    return {"first": full("first", era, **same), "second": full("second", era, **same)}


async def read(client: RawClient, uri: str) -> list[dict[str, Any]]:
    return (await client.request("resources/read", {"uri": uri}))["contents"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_page_of_every_server_is_in_the_list(tmp_path: Path, version: str) -> None:
    """Lists of several pages, of servers of both eras, come as one list without a cursor, in the config's order."""
    servers = {"one": full("one", pages=3), "two": full("two", "modern", pages=2)}
    async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp, version) as client:
        await client.until_in("prompts", "one__greet")
        await client.until_in("prompts", "two__greet")
        names = [f"{server}__{name}" for server in servers for name in ("greet", "kinds", "asking")]
        assert list(await client.listed("prompts")) == names
        uris = [f"toy://{server}/{kind}" for server in servers for kind in ("text", "blob", "many", "asking")]
        assert list((await client.listed("resources")).values()) == [resource(uri) for uri in uris]
        shapes = [f"toy://{server}/item/{{id}}" for server in servers]
        assert list((await client.listed("templates")).values()) == [template(shape) for shape in shapes]
        for method, _, _ in LISTS.values():
            assert "nextCursor" not in await client.request(method)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("era", ERAS)
async def test_lists_say_how_long_they_hold_in_the_modern_era_alone(tmp_path: Path, era: str, version: str) -> None:
    """ttlMs, cacheScope, resultType and serverInfo for modern clients; none of them for others."""
    async with (
        open_gateway(tmp_path, {"one": full("one", era)}) as gateway,
        http_client(gateway.mcp, version) as client,
    ):
        await client.until_in("prompts", "one__greet")
        for method, key, _ in LISTS.values():
            result = await client.request(method)
            if not client.modern:
                assert set(result) == {key}
                continue
            assert (result["resultType"], result["cacheScope"]) == ("complete", "private")
            assert isinstance(result["ttlMs"], int)
            assert result["_meta"][SERVER_INFO_KEY]["name"] == "pegboard"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("era", ERAS)
async def test_the_later_one_of_two_same_uris_is_aliased(tmp_path: Path, era: str, version: str) -> None:
    """The earlier server keeps the URI; the later one's is listed, read, linked and completed under its alias."""
    async with open_gateway(tmp_path, rivals(era)) as gateway, http_client(gateway.mcp, version) as client:
        listed = await client.until_in("resources", ALIAS)
        assert listed[SHARED] == resource(SHARED)
        assert listed[ALIAS] == {**resource(SHARED), "uri": ALIAS}
        assert await read(client, SHARED) == [{"uri": SHARED, "text": f"{SHARED} of first"}]
        assert await read(client, ALIAS) == [{"uri": ALIAS, "text": f"{SHARED} of second"}]

        shape, aliased = "shared://item/{id}", "pegboard://second/shared://item/{id}"
        listed = await client.until_in("templates", aliased)
        assert (listed[shape], listed[aliased]) == (template(shape), {**template(shape), "uriTemplate": aliased})
        item, other = "shared://item/7", "pegboard://second/shared://item/7"
        assert await read(client, item) == [{"uri": item, "text": f"{item} of first"}]
        assert await read(client, other) == [{"uri": other, "text": f"{item} of second"}]

        for server, uri in (("first", SHARED), ("second", ALIAS)):
            link = (await client.call(f"{server}__linked", {"uri": SHARED}))["content"][0]
            assert link == {"type": "resource_link", "uri": uri, "name": "linked", "size": 3}
        asked = {"ref": {"type": "ref/resource", "uri": aliased}, "argument": {"name": "id", "value": "7"}}
        completion = (await client.request("completion/complete", asked))["completion"]
        assert json.loads(completion["values"][0]) == {**asked, "ref": {"type": "ref/resource", "uri": shape}}


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_link_is_taken_over_by_no_other_server(tmp_path: Path, version: str) -> None:
    """A client reads what nobody lists from the server that gave it the link, whatever comes later."""
    uri = "report://2024/q3"
    # Each of them would answer for anything, and claims nothing.
    servers = {name: full(name, template_uris=["{+any}"]) for name in ("first", "second")}
    async with (
        open_gateway(tmp_path, servers) as gateway,
        http_client(gateway.mcp, version) as ada,
        http_client(gateway.mcp, version) as bob,
    ):
        bob.name = "bob"

        async def link(client: RawClient, server: str) -> str:
            return (await client.call(f"{server}__linked", {"uri": uri}))["content"][0]["uri"]

        await ada.until_in("resources", "toy://second/text")
        assert await link(ada, "first") == uri
        assert await link(bob, "second") == uri
        assert (await read(ada, uri))[0]["text"] == f"{uri} of first"
        assert (await read(bob, uri))[0]["text"] == f"{uri} of second"
        alias = await link(ada, "second")
        assert alias == f"pegboard://second/{uri}"
        assert (await read(ada, uri))[0]["text"] == f"{uri} of first"
        assert (await read(ada, alias))[0]["text"] == f"{uri} of second"


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_is_out_of_sight_is_asked_of_nobody_else(tmp_path: Path, version: str) -> None:
    """The only server in sight gets what nobody is known to have; nothing that another one has."""
    # It would answer for anything, and claims nothing.
    servers = {"first": full("first"), "second": full("second", template_uris=["{+any}"])}
    theirs = ("toy://first/text", "toy://first/item/1", "pegboard://first/toy://first/text", "pegboard://nobody/x:y")

    async def is_refused(client: RawClient, uri: str) -> None:
        asked = {"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "id", "value": "1"}}
        for method, params in (("resources/read", {"uri": uri}), ("completion/complete", asked)):
            with pytest.raises(RpcError, match=r"Resource not found|server first is disabled"):
                await client.request(method, params)

    async with open_gateway(tmp_path, servers) as gateway:
        async with http_client(gateway.mcp, version) as client:
            await client.until_in("templates", "toy://first/item/{id}")
            await client.until_in("templates", "{+any}")
        async with http_client(f"{gateway.mcp}?server=second", version) as client:
            assert (await read(client, "other://x"))[0]["text"] == "other://x of second"
            for uri in theirs:
                await is_refused(client, uri)
        await gateway.configure({**servers, "first": {**servers["first"], "enabled": False}})
        async with http_client(gateway.mcp, version) as client:
            assert (await read(client, "other://x"))[0]["text"] == "other://x of second"
            for uri in theirs:
                await is_refused(client, uri)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("era", ERAS)
async def test_an_aliased_resource_is_watched_under_its_alias(tmp_path: Path, era: str, version: str) -> None:
    """The server is asked for its own URI, the client hears of the alias, and not of the other server's resource."""
    async with open_gateway(tmp_path, rivals(era)) as gateway, http_client(gateway.mcp, version) as client:
        await client.until_in("resources", ALIAS)
        if client.modern:
            await client.listen({"resourceSubscriptions": [ALIAS]})
        else:
            await client.request("resources/subscribe", {"uri": ALIAS})
        await until_seen(client, "second", lambda now: now["subscriptions"] == [SHARED])
        assert (await seen(client, "first"))["subscriptions"] == []
        await client.text("first__touch", {"uri": SHARED})
        await client.text("second__touch", {"uri": SHARED})
        assert [said["uri"] for said in await client.until_heard(UPDATED)] == [ALIAS]


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_unknown_prompt_is_an_error_with_a_suggestion(tmp_path: Path, version: str) -> None:
    """-32602 and the nearest name."""
    async with open_gateway(tmp_path, {"one": full("one")}) as gateway, http_client(gateway.mcp, version) as client:
        await client.until_in("prompts", "one__greet")
        with pytest.raises(RpcError) as unknown:
            await client.request("prompts/get", {"name": "one__gret"})
        assert unknown.value.code == -32602
        assert "one__greet" in unknown.value.message


@pytest.mark.parametrize("era", ERAS)
async def test_a_stream_tells_of_the_kinds_that_were_asked_for(tmp_path: Path, era: str) -> None:
    """A modern client that listens to prompts hears of prompts, not of resources or tools."""
    async with open_gateway(tmp_path, {"one": full("one", era)}) as gateway:
        async with (
            http_client(gateway.mcp, "2026-07-28", listen={"promptsListChanged": True}) as narrow,
            http_client(gateway.mcp, "2026-07-28", listen={"resourcesListChanged": True}) as other,
        ):
            await narrow.until_in("prompts", "one__greet")
            narrow.notifications.clear()
            await narrow.call("one__change", {"add": ["new"]})
            await narrow.call("one__change", {"add_resources": ["new://one"]})
            await other.until_in("resources", "new://one")
            await other.until_heard("notifications/resources/list_changed")
            await narrow.call("one__change", {"add_prompts": ["new"]})
            await narrow.until_heard("notifications/prompts/list_changed")
            assert {method for method, _ in narrow.notifications} == {"notifications/prompts/list_changed"}


@pytest.mark.parametrize("era", ERAS)
async def test_one_subscription_serves_every_client_until_the_last_is_gone(tmp_path: Path, era: str) -> None:
    """Two clients, of either era, on one URI are one subscription at the server; a third one hears nothing."""
    uri = "toy://one/text"
    async with open_gateway(tmp_path, {"one": full("one", era)}) as gateway:
        async with http_client(gateway.mcp) as old, http_client(gateway.mcp) as bystander:
            await old.until_in("resources", uri)
            await old.request("resources/subscribe", {"uri": uri})
            async with http_client(gateway.mcp, "2026-07-28") as modern:
                await modern.listen({"resourceSubscriptions": [uri]})
                await until_seen(old, "one", lambda now: now["subscriptions"] == [uri])
                assert await old.text("one__touch", {"uri": uri}) == "1"
                await old.until_heard(UPDATED)
                await modern.until_heard(UPDATED)
                await old.request("resources/unsubscribe", {"uri": uri})
                assert await old.text("one__touch", {"uri": uri}) == "1"
                await modern.until_heard(UPDATED, 2)
                assert len(old.said(UPDATED)) == 1
            # The modern client did not say goodbye: its stream is closed, and with it the last subscription.
            await until_seen(old, "one", lambda now: now["subscriptions"] == [])
            assert bystander.said(UPDATED) == []


async def test_a_session_that_ends_takes_its_subscriptions_along(tmp_path: Path) -> None:
    """A handshake client that leaves without unsubscribing leaves nothing behind."""
    uri = "toy://one/text"
    async with open_gateway(tmp_path, {"one": full("one")}) as gateway, http_client(gateway.mcp) as stays:
        async with http_client(gateway.mcp) as leaves:
            await leaves.until_in("resources", uri)
            await leaves.request("resources/subscribe", {"uri": uri})
            await until_seen(stays, "one", lambda now: now["subscriptions"] == [uri])
        await until_seen(stays, "one", lambda now: now["subscriptions"] == [])


async def test_subscriptions_outlive_a_restart_of_the_server(tmp_path: Path) -> None:
    """A server that died and came back is asked again for what clients still watch."""
    uri = "toy://one/text"
    async with open_gateway(tmp_path, {"one": full("one")}) as gateway, http_client(gateway.mcp) as client:
        await client.until_in("resources", uri)
        await client.request("resources/subscribe", {"uri": uri})
        await until_seen(client, "one", lambda now: now["subscriptions"] == [uri])
        pid = await client.text("one__pid")
        await client.call("one__die")
        async with asyncio.timeout(LIMIT):
            while not (now := await client.text("one__pid")).isdigit() or now == pid:
                await asyncio.sleep(0.05)
        await until_seen(client, "one", lambda now: now["subscriptions"] == [uri])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("era", ERAS)
async def test_lists_come_from_disk_after_a_restart(tmp_path: Path, era: str, version: str) -> None:
    """Prompts, resources and templates are listed with no connection open."""
    log = tmp_path / "log"
    servers = {"one": full("one", era, log=str(log))}
    async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp, version) as client:
        await client.until_in("templates", "toy://one/item/{id}")
        before = {kind: await client.listed(kind) for kind in LISTS}
    assert before["prompts"]["one__greet"] == {**prompt("greet"), "name": "one__greet"}
    log.unlink()
    async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp, version) as client:
        assert {kind: await client.listed(kind) for kind in LISTS} == before
        assert not log.exists()
        got = await client.request("prompts/get", {"name": "one__greet", "arguments": {"who": "me"}})
        assert got["description"] == "said"
        assert log.exists()


async def test_a_server_is_asked_only_for_what_it_announced(tmp_path: Path) -> None:
    """A server with tools alone is never asked for prompts or resources."""
    async with open_gateway(tmp_path, {"one": toy(era="handshake")}) as gateway, http_client(gateway.mcp) as client:
        await client.until_in("tools", "one__seen")
        assert [await client.listed(kind) for kind in ("prompts", "resources", "templates")] == [{}, {}, {}]
        assert not {"prompts/list", "resources/list"} & set((await seen(client, "one"))["requests"])


async def test_a_clients_filter_binds_prompts_and_resources(tmp_path: Path) -> None:
    """`/mcp?server=one` shows, gets and reads what `one` has, and nothing else."""
    async with open_gateway(tmp_path, {"one": full("one"), "two": full("two")}) as gateway:
        async with http_client(gateway.mcp) as wide, http_client(f"{gateway.mcp}?server=one") as client:
            await wide.until_in("prompts", "two__greet")
            await wide.until_in("prompts", "one__greet")
            assert set(await client.listed("prompts")) == {"one__greet", "one__kinds", "one__asking"}
            assert all(uri.startswith("toy://one/") for uri in await client.listed("resources"))
            assert set(await client.listed("templates")) == {"toy://one/item/{id}"}
            with pytest.raises(RpcError):
                await client.request("prompts/get", {"name": "two__greet"})
            with pytest.raises(RpcError):
                await read(client, "toy://two/text")


async def test_what_a_lost_server_offered_leaves_the_lists_and_comes_back(tmp_path: Path) -> None:
    """Prompts and resources go and come with their server, as tools do."""
    servers = {"one": full("one"), "two": full("two")}
    async with open_gateway(tmp_path, servers) as gateway, http_client(gateway.mcp) as client:
        await client.until_in("prompts", "one__greet")
        await client.until_in("prompts", "two__greet")
        # A list that the client was never given may come and go within the pause before a notice: then there is none.
        await client.until_in("resources", "toy://one/text")
        client.notifications.clear()
        await gateway.configure({"two": servers["two"]})
        for kind in ("prompts", "resources"):
            await client.until_heard(f"notifications/{kind}/list_changed")
        assert "one__greet" not in await client.listed("prompts")
        assert "toy://one/text" not in await client.listed("resources")
        await gateway.configure(servers)
        await client.until_in("prompts", "one__greet")
        await client.until_in("resources", "toy://one/text")
        await eventually(lambda: len(client.said("notifications/prompts/list_changed")) >= 2)


async def test_one_clients_streams_shut_nobody_else_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client has its share of the streams, and a stream that is closed makes room for another."""
    monkeypatch.setattr("pegboard.sdk.server.STREAM_SHARE", 2)
    silent: dict[str, Any] = {"version": "2026-07-28", "listen": False}
    async with open_gateway(tmp_path, {"toy": toy()}) as gateway:
        async with http_client(gateway.mcp, **silent) as client, http_client(gateway.mcp, **silent) as other:
            other.name = "other"
            streams = [await client.listen(), await client.listen()]
            with pytest.raises(RpcError, match="too many subscription streams are open"):
                await client.listen()
            await other.listen()
            streams[0].cancel()

            async def is_open() -> bool:
                with contextlib.suppress(RpcError):
                    return bool(await client.listen())
                return False

            async with asyncio.timeout(LIMIT):
                while not await is_open():
                    await asyncio.sleep(0.02)


async def test_the_resources_that_a_principal_follows_have_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many streams and clients it has; what a stream followed is free again when it is closed."""
    monkeypatch.setattr("pegboard.sdk.server.FOLLOWED_SHARE", 3)
    async with open_gateway(tmp_path, {"toy": toy()}) as gateway:
        async with (
            http_client(gateway.mcp, "2026-07-28", listen=False) as client,
            http_client(gateway.mcp, "2026-07-28", listen=False) as other,
        ):
            first = await client.listen({"resourceSubscriptions": ["nope://1", "nope://2"]})
            with pytest.raises(RpcError, match="together may follow 3 resources at most: close one first"):
                await other.listen({"resourceSubscriptions": ["nope://3", "nope://4"]})
            await other.listen()
            first.cancel()

            async def is_open() -> bool:
                with contextlib.suppress(RpcError):
                    return bool(await other.listen({"resourceSubscriptions": ["nope://3", "nope://4"]}))
                return False

            async with asyncio.timeout(LIMIT):
                while not await is_open():
                    await asyncio.sleep(0.02)


async def test_the_resources_that_one_stream_follows_have_a_limit(tmp_path: Path) -> None:
    """Up to it a stream is acknowledged, however few of them there are, and holds nobody up."""
    async with open_gateway(tmp_path, {"toy": toy()}) as gateway:
        async with http_client(gateway.mcp, "2026-07-28", listen=False) as client:
            uris = [f"nope://{number}" for number in range(MAX_FOLLOWED + 1)]
            with pytest.raises(RpcError, match="1,000 resources at most"):
                await client.listen({"resourceSubscriptions": uris})
            with loopwatch() as watch:
                await client.listen({"resourceSubscriptions": uris[1:]})
            watch.check()
