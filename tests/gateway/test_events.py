"""The stream of events: what changes is told as it does, to whoever may know of it, and costs nothing unwatched."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx2
import pytest

from gateway.event_stream import Events, watching
from harness import LIMIT, MODERN, http_client, open_gateway, toy
from pegboard.gateway import event_feed
from pegboard.gateway.rest.event_place import FeedPlace, read_place, write_place

pytestmark = pytest.mark.anyio
ARGUMENTS = {"text": "tulip-tulip-tulip"}


async def call(http: httpx2.AsyncClient, tool: str = "one__echo") -> None:
    await http.post(f"/api/tools/{tool}/call", json={"arguments": ARGUMENTS})


async def kinds_until_call(events: Events) -> list[str]:
    """What a stream tells up to the next call."""
    kinds = [(await events.next())[0]]
    while kinds[-1] != "call":
        kinds.append((await events.next())[0])
    return kinds


async def test_a_change_of_a_server_is_told(tmp_path: Path) -> None:
    """By its name and state; that the config is another one is a fact of its own."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        await gateway.board.refresh(["one"])
        async with watching(gateway) as (http, events):
            await http.post("/api/servers/one/disable")
            told = await events.take({"server", "config", "tools"})
    assert told["server"] == {"name": "one", "state": "disabled"}


async def test_new_lines_of_a_log_are_told_to_admins(tmp_path: Path) -> None:
    """That there are some, not what they say: also where nothing else about the server is another than before."""
    async with open_gateway(tmp_path, {"one": toy()}, auth={"required": True}) as gateway:
        await gateway.board.refresh(["one"])
        admin, other = await gateway.token("admin", admin=True), await gateway.token("other")
        async with watching(gateway, admin) as (http, events), watching(gateway, other) as (_, weak):
            gateway.board.servers["one"].log.write("tulip-tulip-tulip")
            assert await events.wait_for("log") == {"name": "one"}
            await http.post("/api/servers/one/disable")
            kinds = [(await weak.next())[0]]
            while kinds[-1] != "server":
                kinds.append((await weak.next())[0])
    assert "log" not in kinds


async def test_a_server_that_is_removed_is_told(tmp_path: Path) -> None:
    """Whoever shows it has to take it away."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, watching(gateway) as (http, events):
        await http.delete("/api/servers/one")
        assert await events.wait_for("server") == {"name": "one", "state": "removed"}


async def test_a_call_is_told_without_its_arguments(tmp_path: Path) -> None:
    """Who called what, how it went and how long it took, as in a record of the audit."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, watching(gateway) as (http, events):
        await call(http)
        told = await events.wait_for("call")
        await call(http, "one__no_such")
        refused = await events.wait_for("call")
    assert (told["tool"], told["server"], told["outcome"], told["client"]) == ("one__echo", "one", "ok", "REST")
    assert told["principal"] == {"id": "local", "name": "local"}
    assert told["ms"] > 0
    assert ARGUMENTS["text"] not in json.dumps(told)
    assert (refused["outcome"], "server" in refused) == ("refused:unknown_tool", False)


@pytest.mark.both_paths
@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
async def test_a_call_of_any_client_is_told(tmp_path: Path, version: str) -> None:
    """Whichever path it takes."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        await gateway.board.refresh(["one"])
        async with watching(gateway) as (_, events), http_client(gateway.mcp, version) as client:
            await client.call("one__echo", ARGUMENTS)
            told = await events.wait_for("call")
    assert (told["tool"], told["server"], told["outcome"], told["client"]) == ("one__echo", "one", "ok", "raw/0")
    assert ARGUMENTS["text"] not in json.dumps(told)


async def test_a_burst_of_calls_is_told_as_a_few_and_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page has to show it, and the gateway has more to do."""
    monkeypatch.setattr(event_feed, "MOST_CALLS", 2)
    monkeypatch.setattr(event_feed, "LOOK_EVERY", 3600.0)
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, watching(gateway) as (http, events):
        for _ in range(5):
            await call(http)
        gateway.feed.look()
        told = [await events.wait_for("call") for _ in range(2)]
        assert await events.wait_for("calls") == {"more": 3}
    assert [data["tool"] for data in told] == ["one__echo"] * 2


async def test_a_change_of_memories_is_told(tmp_path: Path) -> None:
    """Whoever shows them reads them again; reading them changes nothing."""
    async with (
        open_gateway(tmp_path, {"one": toy()}, toolsets=["memory"]) as gateway,
        watching(gateway) as (http, events),
    ):
        await http.get("/api/memories")
        await http.post("/api/memories", json={"key": "a", "summary": "b", "text": "c"})
        assert await events.wait_for("memory") == {}


async def test_whoever_may_only_read_is_told_of_changes(tmp_path: Path) -> None:
    """Who reads memories hears that others changed them; who has none of their tools does not."""
    async with open_gateway(tmp_path, {"one": toy()}, toolsets=["memory"]) as gateway:
        reader, other = await gateway.token("reader", readOnly=True), await gateway.token("other", servers=["one"])
        async with watching(gateway, reader) as (_, events), watching(gateway, other) as (theirs, other_events):
            async with watching(gateway) as (ours, _):
                await ours.post("/api/memories", json={"key": "a", "summary": "b", "text": "c"})
                assert await events.wait_for("memory") == {}
            await call(theirs)
            heard = [await other_events.next()]
            while heard[-1][0] != "call":
                heard.append(await other_events.next())
        assert "memory" not in [kind for kind, _ in heard]


async def test_a_change_of_memories_is_told_to_those_who_have_the_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That others write down memories is nothing to somebody with a namespace of their own; a memory in that one is."""
    monkeypatch.setattr(event_feed, "LOOK_EVERY", 3600.0)
    async with open_gateway(tmp_path, {"one": toy()}, toolsets=["memory"]) as gateway:
        mine = await gateway.token("mine", namespaces=["mine"])
        async with watching(gateway) as (ours, all_events), watching(gateway, mine) as (theirs, events):
            for namespace, kinds in (("others", ["call"]), ("mine", ["memory", "call"])):
                memory = {"key": f"a-{namespace}", "namespace": namespace}
                assert (await ours.post("/api/memories", json=memory)).status_code == 201
                gateway.feed.look()
                assert await all_events.wait_for("memory") == {}
                await call(theirs)
                gateway.feed.look()
                assert [kind for kind in await kinds_until_call(events) if kind not in {"server", "tools"}] == kinds


async def test_a_change_of_tokens_is_told_to_admins(tmp_path: Path) -> None:
    """One that is made, changed or removed, without its name; nobody else hears of it."""
    async with open_gateway(tmp_path, {}) as gateway:
        weak = await gateway.token("weak")
        async with watching(gateway) as (http, events), watching(gateway, weak) as (_, others):
            for change in (
                http.post("/api/tokens", json={"name": "ci", "rule": {"admin": True}}),
                http.patch("/api/tokens/ci", json={"rule": {"admin": None}}),
                http.delete("/api/tokens/ci"),
            ):
                await change
                assert await events.wait_for("tokens") == {}
            await gateway.configure({"one": toy()})
            told = [(await others.next())[0]]
            while "server" not in told:
                told.append((await others.next())[0])
            assert "tokens" not in told


async def test_each_is_told_what_they_may_know(tmp_path: Path) -> None:
    """A weak token hears of its own calls and servers, and of nothing else."""
    async with open_gateway(tmp_path, {"one": toy(), "two": toy()}) as gateway:
        weak = await gateway.token("weak", servers=["two"])
        async with watching(gateway, weak) as (theirs, events), watching(gateway) as (ours, all_events):
            await call(ours)
            await call(theirs, "one__echo")
            await ours.post("/api/servers/one/disable")
            heard, disabled = [await all_events.next()], ("server", {"name": "one", "state": "disabled"})
            while [kind for kind, _ in heard].count("call") < 2 or disabled not in heard:
                heard.append(await all_events.next())
            seen = [data for kind, data in heard if kind == "call"]
            await call(theirs, "two__echo")
            told = [await events.next()]
            while told[-1][1].get("tool") != "two__echo":
                told.append(await events.next())
    # With the same word as for a tool that never was.
    assert [data["outcome"] for kind, data in told if kind == "call"] == ["refused:unknown_tool", "ok"]
    assert [data["outcome"] for data in seen] == ["ok", "refused:rule"]
    assert {kind for kind, _ in told} <= {"call", "server", "tools"}
    assert "one" not in {data.get("name") for _, data in told}


async def test_whoever_comes_back_goes_on_where_they_were(tmp_path: Path) -> None:
    """Nothing of what happened meanwhile is missing, as long as somebody looked on."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, watching(gateway) as (http, events):
        async with watching(gateway) as (_, others):
            await call(http)
            await others.wait_for("call")
            known = others.last_id
        await call(http, "one__no_such")
        await events.wait_for("call")
        await events.wait_for("call")
        async with http.stream("GET", "/api/events", headers={"last-event-id": known}) as response:
            again = Events(response)
            assert (await again.next())[1]["resumed"] is True
            assert (await again.wait_for("call"))["tool"] == "one__no_such"
        for unknown in (
            "0000-7",
            "bananas",
            "9" * 5000,
            known[:-1],
            f"{known[:20]}{'0' * 8}{known[28:]}",
            "/" * len(known),
        ):
            async with http.stream("GET", "/api/events", headers={"last-event-id": unknown}) as response:
                anew = Events(response)
                assert (await anew.next())[1]["resumed"] is False
                assert (await anew.next())[0] == "resync"


async def test_what_somebody_may_not_see_leaves_no_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No comment when it happens, and no number that it counts in: a stream's ids are unlike those of any other."""
    monkeypatch.setattr(event_feed, "LOOK_EVERY", 3600.0)
    servers = {"one": toy(), "two": toy()}
    async with open_gateway(tmp_path, servers, auth={"required": True}) as gateway:
        await gateway.board.refresh(["one", "two"])
        admin, other = await gateway.token("admin", admin=True), await gateway.token("other", servers=["one"])
        async with watching(gateway, other) as (http, events), watching(gateway, admin) as (all_seeing, others):
            gateway.feed.look()
            for _ in range(3):
                await call(all_seeing, "two__echo")
                gateway.feed.look()
                await others.wait_for("call")
            await call(http)
            gateway.feed.look()
            assert (await events.wait_for("call"))["tool"] == "one__echo"
            mine = events.last_id
            while (await others.wait_for("call"))["tool"] != "one__echo":
                pass
            assert mine != others.last_id
            async with http.stream("GET", "/api/events", headers={"last-event-id": mine}) as response:
                again = Events(response)
                assert (await again.next())[1]["resumed"] is True
                assert len({mine, others.last_id, again.last_id}) == 3
    assert events.comments == 0


@pytest.mark.parametrize("number", [FeedPlace(0), FeedPlace(7, 9), FeedPlace(2**40, 2**64 - 1)])
def test_a_place_is_read_by_its_own_key_alone(number: FeedPlace) -> None:
    """And as it was written: none can be made of another."""
    key = b"k" * 32
    place = write_place(key, number)
    assert read_place(key, place) == number
    assert place != write_place(key, number)
    assert read_place(b"o" * 32, place) is None
    changed = [place[:at] + ("1" if place[at] == "0" else "0") + place[at + 1 :] for at in range(len(place))]
    assert {read_place(key, each) for each in changed} == {None}


async def test_whoever_falls_behind_is_told_to_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they missed is kept no longer."""
    monkeypatch.setattr(event_feed, "KEPT", 1)
    monkeypatch.setattr(event_feed, "LOOK_EVERY", 3600.0)
    async with open_gateway(tmp_path, {"one": toy()}) as gateway, watching(gateway) as (http, events):
        await call(http)
        await call(http)
        gateway.feed.look()
        assert (await events.next())[0] == "resync"


async def test_while_nobody_looks_on_nothing_is_compared_or_kept(tmp_path: Path) -> None:
    """Calls are told to nobody."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        assert gateway.board.calls.on_end is None
        async with watching(gateway) as (http, _):
            assert gateway.board.calls.on_end is not None
            await http.get("/api/servers")
        async with asyncio.timeout(LIMIT):
            while gateway.board.calls.on_end is not None:
                await asyncio.sleep(0.01)


async def test_a_stream_ends_with_its_token_and_with_the_gateway(tmp_path: Path) -> None:
    """The one at once when it is removed, the other when the gateway stops."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        weak = await gateway.token("weak")
        async with watching(gateway) as (http, events):
            async with watching(gateway, weak) as (_, theirs):
                await http.delete("/api/tokens/weak")
                with pytest.raises(EOFError):
                    await theirs.wait_for("never")
            gateway.feed.close()
            with pytest.raises(EOFError):
                await events.wait_for("never")


async def test_a_stream_ends_when_its_principal_has_other_rights(tmp_path: Path) -> None:
    """Whoever reads it comes back with those."""
    async with open_gateway(tmp_path, {"one": toy()}) as gateway:
        boss = await gateway.token("boss", admin=True)
        async with watching(gateway) as (http, _), watching(gateway, boss) as (_, theirs):
            answer = await http.patch("/api/tokens/boss", json={"rule": {"admin": False}})
            assert answer.status_code == 200, answer.text
            with pytest.raises(EOFError):
                await theirs.wait_for("never")


async def test_there_is_room_for_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One too many is refused, and may try again."""
    monkeypatch.setattr(event_feed, "MOST_ONLOOKERS", 2)
    monkeypatch.setattr(event_feed, "MOST_OF_PRINCIPAL", 1)
    async with open_gateway(tmp_path, {}) as gateway, watching(gateway) as (http, _):
        answer = await http.get("/api/events")
        assert (answer.status_code, answer.json()["error"]["retryable"]) == (503, True)
        assert (await http.head("/api/events")).status_code == 200
        # One principal does not take the places of others.
        async with watching(gateway, await gateway.token("other")):
            third = await gateway.token("third")
            assert (await http.get("/api/events", headers=third)).status_code == 503


async def test_a_change_of_a_hidden_tool_is_told_to_those_alone_who_see_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither that its server changed nor an error of it; what changes in sight is told, also to whoever comes back."""
    monkeypatch.setattr(event_feed, "LOOK_EVERY", 3600.0)
    async with open_gateway(tmp_path, {"one": toy()}, auth={"required": True}) as gateway:
        await gateway.board.refresh(["one"])
        admin = await gateway.token("admin", admin=True)
        weak = await gateway.token("weak", tools={"deny": ["one__hidden*"]})
        async with watching(gateway, admin) as (ours, all_events), watching(gateway, weak) as (theirs, events):

            async def add(name: str) -> None:
                arguments = {"add": [name], "announce": False}
                await ours.post("/api/tools/one__change/call", json={"arguments": arguments})
                await gateway.board.refresh(["one"])
                gateway.feed.look()

            async def told() -> list[str]:
                await call(theirs)
                gateway.feed.look()
                return await kinds_until_call(events)

            await told()
            await add("hidden_one")
            gateway.board.servers["one"].last_error = "hidden_one failed"
            gateway.feed.look()
            assert {"server", "tools"} <= (await all_events.take({"server", "tools"})).keys()
            known = events.last_id
            assert await told() == ["call"]
            async with theirs.stream("GET", "/api/events", headers={"last-event-id": known}) as response:
                again = Events(response)
                assert (await again.next())[1]["resumed"] is True
                assert await kinds_until_call(again) == ["call"]
            await add("visible")
            async with theirs.stream("GET", "/api/events", headers={"last-event-id": known}) as response:
                again = Events(response)
                assert (await again.next())[1]["resumed"] is False
                assert (await again.next())[0] == "resync"
            assert set(await told()) == {"server", "tools", "call"}
