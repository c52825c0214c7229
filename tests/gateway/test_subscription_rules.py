"""Subscriptions under rules: they end with what a rule hides, count within limits, and are not without end; and the
URIs of resources tell nothing of servers that a rule hides."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from audit.readers import records_of
from bearers import bearer_client
from harness import LIMIT, Gateway, RawClient, eventually, http_client, open_gateway, seen, toy, until_seen
from pegboard.relay import session_subscriptions
from pegboard.servers.errors import RpcError

pytestmark = pytest.mark.anyio

FEATURES = ["tools", "resources", "completions", "logging", "asking", "odd"]
UPDATED = "notifications/resources/updated"
VERSIONS = ["2025-11-25", "2026-07-28"]
SHARED: dict[str, Any] = {"resource_uris": ["doc://handbook"], "template_uris": ["doc://page/{n}"]}
SERVERS = {name: toy(name=name, features=FEATURES, **SHARED) for name in ("vault", "public")}
OWN: dict[str, Any] = {"expose": "all", "toolsets": ["discovery"]}


async def meet(gateway: Gateway) -> None:
    """Have everything of the servers known."""
    await gateway.board.refresh()
    await gateway.board.discovery.discover_resources(LIMIT)


def followed_by(client: RawClient) -> list[list[str]]:
    """The resources that each stream of a client follows."""
    acknowledged = client.said("notifications/subscriptions/acknowledged")
    found = (each["notifications"].get("resourceSubscriptions") for each in acknowledged)
    return [uris for uris in found if uris]


@pytest.mark.scenario("access: A subscription ends with what a rule hides")
async def test_a_session_hears_no_more_of_what_is_hidden_now(tmp_path: Path) -> None:
    """Its subscription ended with the rule, at the server too; another one goes on."""
    rules = [{"who": ["token:somebody"], "servers": ["public", "vault"]}]
    narrower = [{"who": ["token:somebody"], "servers": ["public"]}]
    async with open_gateway(tmp_path, SERVERS, auth={"rules": rules}, **OWN) as gateway:
        await meet(gateway)
        token = await gateway.token()
        async with bearer_client(gateway, token) as client, http_client(gateway.mcp) as owner:
            for name in SERVERS:
                await client.request("resources/subscribe", {"uri": f"toy://{name}/text"})
            await owner.call("vault__touch", {"uri": "toy://vault/text"})
            await client.until_heard(UPDATED)
            await gateway.configure(SERVERS, auth={"rules": narrower}, **OWN)
            await until_seen(owner, "vault", lambda state: not state["subscriptions"])
            await owner.call("vault__touch", {"uri": "toy://vault/text"})
            await owner.call("public__touch", {"uri": "toy://public/text"})
            heard = await client.until_heard(UPDATED, 2)
            assert [params["uri"] for params in heard] == ["toy://vault/text", "toy://public/text"]
            # Given again, it can be subscribed to again.
            await gateway.configure(SERVERS, auth={"rules": rules}, **OWN)
            await client.request("resources/subscribe", {"uri": "toy://vault/text"})
            await owner.call("vault__touch", {"uri": "toy://vault/text"})
            await client.until_heard(UPDATED, 3)


@pytest.mark.scenario("access: A subscription ends with what a rule hides")
async def test_a_stream_ends_with_the_rule_it_was_opened_under(tmp_path: Path) -> None:
    """In the modern era it is opened anew, and then follows what the rule gives."""
    rules = [{"who": ["token:somebody"], "servers": ["public", "vault"]}]
    async with open_gateway(tmp_path, SERVERS, auth={"rules": rules}, **OWN) as gateway:
        await meet(gateway)
        wanted = {"resourceSubscriptions": ["toy://vault/text", "toy://public/text"]}
        async with bearer_client(gateway, await gateway.token(), "2026-07-28") as client:
            stream = await client.listen(wanted)
            narrower = [{"who": ["token:somebody"], "servers": ["public"]}]
            await gateway.configure(SERVERS, auth={"rules": narrower}, **OWN)
            await asyncio.wait_for(stream, LIMIT)
            await client.listen(wanted)
            async with http_client(gateway.mcp) as owner:
                await until_seen(owner, "vault", lambda state: not state["subscriptions"])
                for name in SERVERS:
                    await owner.call(f"{name}__touch", {"uri": f"toy://{name}/text"})
            assert [each["uri"] for each in await client.until_heard(UPDATED)] == ["toy://public/text"]


async def answers_about_resources(client: RawClient) -> list[str]:
    """Everything that can name a resource, as text."""
    argument = {"name": "n", "value": "1"}
    ref = {"type": "ref/resource", "uri": "doc://page/{n}"}
    said: list[Any] = [
        await client.listed("resources"),
        await client.listed("templates"),
        await client.request("resources/read", {"uri": "doc://handbook"}),
        await client.request("resources/read", {"uri": "doc://page/1"}),
        await client.request("completion/complete", {"ref": ref, "argument": argument}),
        *[await client.call("public__linked", {"uri": uri}) for uri in ("doc://handbook", "doc://page/2", "doc://x")],
    ]
    return [json.dumps(each, sort_keys=True) for each in said]


@pytest.mark.scenario("access: What a rule hides is as if it never was")
@pytest.mark.parametrize("version", VERSIONS)
async def test_no_alias_tells_of_a_hidden_server(tmp_path: Path, version: str) -> None:
    """Lists, answers and links are the same bytes with a hidden server of the same URIs as without one."""
    said: list[list[str]] = []
    for servers in (SERVERS, {"public": SERVERS["public"]}):
        async with open_gateway(tmp_path / str(len(servers)), servers, **OWN) as gateway:
            await meet(gateway)
            token = await gateway.token(f"of_{len(servers)}", servers=["public"])
            async with bearer_client(gateway, token, version) as client:
                said.append(await answers_about_resources(client))
            async with http_client(gateway.mcp, version) as owner:
                alias = "pegboard://public/doc://handbook" in await owner.listed("resources")
                assert alias == (len(servers) == 2)
    assert said[0] == said[1]
    assert "pegboard://" not in "".join(said[0])


@pytest.mark.scenario("access: What a rule hides is as if it never was")
async def test_a_hidden_server_that_gets_the_same_uri_is_no_news(tmp_path: Path) -> None:
    """A resource keeps its name for whoever cannot know of the other, and nobody of them is told of a change."""
    async with open_gateway(tmp_path, SERVERS, **OWN) as gateway:
        await meet(gateway)
        changed = "notifications/resources/list_changed"
        async with (
            bearer_client(gateway, await gateway.token(servers=["public"])) as client,
            http_client(gateway.mcp) as owner,
        ):
            before = await client.listed("resources")
            await owner.listed("resources")
            await owner.call("vault__change", {"add_resources": ["toy://public/text"]})
            await owner.until_heard(changed)
            assert "pegboard://public/toy://public/text" in await owner.until_in(
                "resources", "pegboard://public/toy://public/text"
            )
            assert await client.listed("resources") == before
            assert client.said(changed) == []


@pytest.mark.scenario("access: What reaches a server counts within limits")
async def test_subscriptions_and_levels_count_as_calls(tmp_path: Path) -> None:
    """Each uses up the limit, is refused beyond it, and does not reach the server then."""
    async with open_gateway(tmp_path, {"one": toy(name="one", features=FEATURES)}, audit={}, **OWN) as gateway:
        await meet(gateway)
        subscribe = ("resources/subscribe", {"uri": "toy://one/text"})
        level = ("logging/setLevel", {"level": "debug"})
        for number, requests in enumerate(((subscribe, level), (level, subscribe))):
            async with bearer_client(gateway, await gateway.token(f"t{number}", rate="1/h")) as client:
                (first, given), (second, refused) = requests
                await client.request(first, given)
                with pytest.raises(RpcError, match="too many calls: the limit is 1/h"):
                    await client.request(second, refused)
                async with http_client(gateway.mcp) as owner:
                    watched = [] if first == level[0] else ["toy://one/text"]
                    assert (await seen(owner, "one"))["subscriptions"] == watched
            async with http_client(gateway.mcp) as owner:
                await until_seen(owner, "one", lambda state: not state["subscriptions"])
        records = [(record.outcome, record.detail) for record in await records_of(gateway, "request")]
        assert records == [("ok", "resources/subscribe"), ("refused:limit", "resources/subscribe")]


@pytest.mark.scenario("access: What reaches a server counts within limits")
async def test_a_stream_follows_as_many_resources_as_its_limit_allows(tmp_path: Path) -> None:
    """One after the other, so that they do not take each other's places."""
    uris = [f"toy://one/{kind}" for kind in ("text", "blob", "many")]
    async with open_gateway(tmp_path, {"one": toy(name="one", features=FEATURES)}, **OWN) as gateway:
        await meet(gateway)
        cases: dict[str, tuple[dict[str, Any], list[str]]] = {
            "at_once": ({"inFlight": 1}, uris),
            "rate": ({"rate": "2/h"}, uris[:2]),
        }
        for name, (rule, followed) in cases.items():
            async with bearer_client(gateway, await gateway.token(name, **rule), "2026-07-28") as client:
                await client.listen({"resourceSubscriptions": uris})
                assert followed_by(client) == [followed]


@pytest.mark.scenario("access: What reaches a server counts within limits")
async def test_notifications_beyond_a_limit_are_dropped(tmp_path: Path) -> None:
    """What a client says to a server of its own counts, and nobody waits for an answer to it."""
    servers = {"own": toy(name="own", features=FEATURES) | {"instance": "session"}}
    async with open_gateway(tmp_path, servers, **OWN) as gateway:
        await meet(gateway)
        token = await gateway.token(perServer={"own": {"rate": "3/h"}})
        async with bearer_client(gateway, token) as client:
            await client.call("own__echo", {})
            for _ in range(5):
                await client.notify("notifications/roots/list_changed")
            assert (await client.call("own__seen", {})).get("isError") is True
            # All that was left of its calls was used up.
            await eventually(lambda: gateway.board.metrics.rate_limited["server"] == 4)


async def test_a_session_has_room_for_so_many_subscriptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more is refused with what to do about it, also where several come at once."""
    monkeypatch.setattr(session_subscriptions, "MOST_SUBSCRIBED", 2)
    uris = [f"toy://one/{kind}" for kind in ("text", "blob", "many")]
    async with open_gateway(tmp_path, {"one": toy(name="one", features=FEATURES)}, **OWN) as gateway:
        await meet(gateway)
        async with http_client(gateway.mcp) as client, http_client(gateway.mcp) as owner:
            work = (client.request("resources/subscribe", {"uri": uri}) for uri in uris)
            outcomes = await asyncio.gather(*work, return_exceptions=True)
            (refused,) = [str(each) for each in outcomes if isinstance(each, RpcError)]
            assert "a session may subscribe to 2 resources at most: unsubscribe from one first" in refused
            await until_seen(owner, "one", lambda state: len(state["subscriptions"]) == 2)
            for uri in uris:
                await client.request("resources/unsubscribe", {"uri": uri})
            await client.request("resources/subscribe", {"uri": uris[2]})
            await until_seen(owner, "one", lambda state: state["subscriptions"] == [uris[2]])
