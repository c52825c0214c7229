"""Sessions and their streams over real HTTP: broken off, read on, taken over, expired, ended, and kept from others."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import weakref
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import httpx2
import pytest
import structlog

from harness import LIMIT, Gateway, eventually, open_gateway, toy
from pegboard.sdk.sessions import IDLE_LIMIT, RETRY, HttpSessions

pytestmark = [pytest.mark.anyio, pytest.mark.both_paths]

VERSION = "2025-11-25"
OLDER = "2025-06-18"
SECRET = "Bearer sesame-open-up"
TOOLS = {"a": toy(), "b": toy()}
SHORT = 0.3
HANGS = {"name": "a__sleep", "arguments": {"seconds": 3600}}


class Event(NamedTuple):
    """One server-sent event."""

    id: str | None
    retry: int | None
    message: dict[str, Any]

    @property
    def said(self) -> Any:
        """The step of a progress, the text of an answer, the code of an error, or the method."""
        if "result" in self.message:
            return self.message["result"]["content"][0]["text"]
        if "error" in self.message:
            return self.message["error"]["code"]
        return self.message.get("params", {}).get("progress", self.message.get("method"))


class Reader:
    """Reads a response's events by hand."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()

    async def next(self) -> Event | None:
        """The next event, or none when the server ended the stream."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(LIMIT):
            async for line in self._lines:
                name, _, value = line.partition(":")
                if name:
                    fields[name] = value.removeprefix(" ")
                elif "data" in fields:
                    retry = int(fields["retry"]) if "retry" in fields else None
                    return Event(fields.get("id"), retry, json.loads(fields["data"] or "{}"))
                elif not line:
                    fields.clear()
        return None

    async def event(self) -> Event:
        """The next event, which there must be."""
        event = await self.next()
        assert event is not None, "the stream ended"
        return event

    async def rest(self) -> list[Event]:
        """All that is still said, until the server ends the stream."""
        events: list[Event] = []
        while (event := await self.next()) is not None:
            events.append(event)
        return events


@dataclass
class Client:
    """A client that does nothing by itself."""

    http: httpx2.AsyncClient
    url: str
    headers: dict[str, str] = field(default_factory=dict[str, str])
    version: str = VERSION

    async def open(self) -> None:
        """Open a session, a new one if there was one."""
        self.headers.pop("mcp-session-id", None)
        info = {"name": "raw", "version": "0"}
        params = {"protocolVersion": self.version, "capabilities": {}, "clientInfo": info}
        async with self.post("initialize", params, 0) as reader:
            assert reader.response.status_code == 200
            self.headers["mcp-session-id"] = reader.response.headers["mcp-session-id"]
            assert (await reader.rest())[-1].message["result"]["protocolVersion"] == self.version
        assert (await self.send("POST", method="notifications/initialized")).status_code == 202

    async def send(self, verb: str, **message: Any) -> httpx2.Response:
        """A whole request with a whole response."""
        body = {"jsonrpc": "2.0", **message} if message else None
        async with asyncio.timeout(LIMIT):
            return await self.http.request(verb, self.url, headers=self._all_headers(), json=body)

    @contextlib.asynccontextmanager
    async def post(self, method: str, params: Mapping[str, Any], request_id: int) -> AsyncGenerator[Reader]:
        """A request and the stream that answers it; leaving it breaks the connection."""
        body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": dict(params)}
        async with self.http.stream("POST", self.url, headers=self._all_headers(), json=body) as response:
            yield Reader(response)

    def call(self, params: Mapping[str, Any], request_id: int = 1) -> contextlib.AbstractAsyncContextManager[Reader]:
        return self.post("tools/call", params, request_id)

    @contextlib.asynccontextmanager
    async def get(self, last: str | None = None) -> AsyncGenerator[Reader]:
        """A standing stream, or the one that this event was of."""
        headers = {**self._all_headers(), **({"last-event-id": last} if last else {})}
        async with self.http.stream("GET", self.url, headers=headers) as response:
            yield Reader(response)

    async def text(self, name: str, arguments: Mapping[str, Any], request_id: int = 99) -> str:
        """The text that a call is answered with."""
        async with self.call({"name": name, "arguments": dict(arguments)}, request_id) as reader:
            if reader.response.headers["content-type"] == "application/json":
                return Event(None, None, json.loads(await reader.response.aread())).said
            return (await reader.rest())[-1].said

    def _all_headers(self) -> dict[str, str]:
        own = {"accept": "application/json, text/event-stream", "mcp-protocol-version": self.version}
        return {**own, **self.headers}


@dataclass
class House:
    """A gateway, and a way to be its clients."""

    gateway: Gateway
    http: httpx2.AsyncClient

    @property
    def sessions(self) -> HttpSessions:
        return self.gateway.front._manager

    @property
    def welcomed(self) -> int:
        """How many sessions the gateway knows of."""
        return self.gateway.front._sessions

    async def client(self, version: str = VERSION, **headers: str) -> Client:
        """A client with a session that the gateway knows of: it says 202 before it looks at a notification."""
        before = self.welcomed
        client = Client(self.http, self.gateway.mcp, dict(headers), version)
        await client.open()
        await eventually(lambda: self.welcomed > before)
        return client

    def nothing_is_kept(self) -> bool:
        shelf = self.sessions.event_buffer
        return not shelf.events and not shelf.bytes and not self.sessions._server_instances


@contextlib.asynccontextmanager
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with open_gateway(tmp_path, TOOLS) as gateway:
        async with httpx2.AsyncClient(timeout=LIMIT) as http:
            yield House(gateway, http)


def progress(server: str = "a", steps: int = 5, pause: float = 0.0) -> dict[str, Any]:
    """A call that tells how far it is."""
    arguments = {"steps": steps, "pause": pause}
    return {"name": f"{server}__progress", "arguments": arguments, "_meta": {"progressToken": f"token {server}"}}


def id_of(event: Event) -> str:
    assert event.id
    return event.id


def steps(count: int) -> list[Any]:
    """All that a call of `progress` says."""
    return [*range(1, count + 1), f"{count} steps, token given"]


async def test_a_stream_begins_with_a_place_to_read_on_from(tmp_path: Path) -> None:
    """Calls and standing streams are primed with an id, no data and a time to come back after."""
    async with house(tmp_path) as here:
        client = await here.client()
        async with client.call(progress(steps=1)) as reader:
            first, *others = await reader.rest()
        async with client.get() as reader:
            standing = await reader.event()
        for event in (first, standing):
            assert (event.message, event.retry) == ({}, RETRY)
            assert event.id
        ids = {first.id, standing.id, *(event.id for event in others)}
        assert len(ids) == 2 + len(others) == 4


async def test_older_clients_are_not_sent_what_they_cannot_read(tmp_path: Path) -> None:
    """Before 2025-11-25 no event is without data, but each has an id that can be read on from."""
    async with house(tmp_path) as here:
        client = await here.client(OLDER)
        async with client.call(progress(steps=3)) as reader:
            first = await reader.event()
            assert first.said == 1
        async with client.get(first.id) as reader:
            assert [event.said for event in await reader.rest()] == steps(3)[1:]
        async with client.get() as reader:
            await client.text("a__change", {"add": ["new"]})
            assert (await reader.event()).said == "notifications/tools/list_changed"


async def test_a_call_goes_on_when_its_connection_breaks(tmp_path: Path) -> None:
    """What it says meanwhile, and its answer, are sent to whoever reads on; then that stream ends."""
    async with house(tmp_path) as here:
        client = await here.client()
        async with client.call(progress(steps=5, pause=0.05)) as reader:
            await reader.event()
            last = await reader.event()
            assert last.said == 1
        async with client.get(last.id) as reader:
            again, *events = await reader.rest()
        assert (again.id, again.message) == (last.id, {})
        assert [event.said for event in events] == steps(5)[1:]
        seen = json.loads(await client.text("a__seen", {}))
        assert (seen["calls"], seen["cancelled"]) == (2, [])


async def test_the_answer_waits_for_the_client(tmp_path: Path) -> None:
    """A call that was answered while nobody listened is answered all the same."""
    async with house(tmp_path) as here:
        client = await here.client()
        async with client.call(progress(steps=3, pause=0.05)) as reader:
            start = await reader.event()
        await eventually(lambda: any(event.text and event.is_answer for event in kept(here, id_of(start))))
        async with client.get(start.id) as reader:
            assert [event.said for event in await reader.rest()][1:] == steps(3)


def kept(here: House, event_id: str) -> list[Any]:
    """What is kept of the stream that an event is of."""
    return list(here.sessions.event_buffer.events[event_id].stream.events.values())


async def test_calls_that_are_over_make_room_for_calls_that_run(tmp_path: Path) -> None:
    """When room gets scarce, answers that went out are forgotten, and an older call that still runs is not."""
    async with house(tmp_path) as here:
        client = await here.client()
        async with client.call(HANGS) as reader:
            running = id_of(await reader.event())
        async with client.call({"name": "a__echo", "arguments": {"long": "x" * 50_000}}, 2) as reader:
            delivered = id_of((await reader.rest())[0])
        here.sessions.event_buffer.max_bytes = 20_000
        async with client.call(progress(steps=1), 3) as reader:
            await reader.rest()
        for event_id, status in ((delivered, 400), (running, 200)):
            async with client.get(event_id) as reader:
                assert reader.response.status_code == status


async def test_a_stream_can_be_read_on_as_often_as_it_breaks(tmp_path: Path) -> None:
    """Broken off after every single event, a call still says everything once and in order."""
    async with house(tmp_path) as here:
        client = await here.client()
        async with client.call(progress(steps=30, pause=0.005)) as reader:
            last = await reader.event()
        heard: list[Any] = []
        while "result" not in last.message:
            async with client.get(last.id) as reader:
                await reader.event()
                last = await reader.event()
                heard.append(last.said)
        assert heard == steps(30)


async def test_streams_of_one_session_do_not_mix(tmp_path: Path) -> None:
    """Two calls at once are broken off and read on, each by its own id, next to a standing stream."""
    async with house(tmp_path) as here:
        client = await here.client()
        async with client.get() as standing:
            await standing.event()
            async with client.call(progress("a", 6, 0.02), 1) as one, client.call(progress("b", 4, 0.02), 2) as two:
                starts = [(await one.event()).id, (await two.event()).id]
            async with client.get(starts[1]) as two, client.get(starts[0]) as one:
                events = [await one.rest(), await two.rest()]
            assert [event.said for event in events[0]][1:] == steps(6)
            assert [event.said for event in events[1]][1:] == steps(4)
            tokens = [event.message["params"]["progressToken"] for event in events[1] if "params" in event.message]
            assert set(tokens) == {"token b"}
            await client.text("a__change", {"add": ["new"]})
            assert (await standing.event()).said == "notifications/tools/list_changed"


async def test_sessions_with_the_same_request_ids_do_not_mix(tmp_path: Path) -> None:
    """Two clients that both call their request 1 read on what is theirs, and cannot read what is not."""
    async with house(tmp_path) as here:
        one, two = await here.client(), await here.client()
        async with one.call(progress("a", 3)) as first, two.call(progress("b", 4)) as second:
            starts = [id_of(await first.event()), id_of(await second.event())]
        async with two.get(starts[1]) as reader:
            assert [event.said for event in await reader.rest()][1:] == steps(4)
        async with two.get(starts[0]) as reader:
            assert reader.response.status_code == 400
        async with one.get(starts[0]) as reader:
            assert [event.said for event in await reader.rest()][1:] == steps(3)


async def test_nothing_is_replayed_after_an_unknown_event(tmp_path: Path) -> None:
    """An id that never was, or was forgotten, is refused, and not with the 404 of a session that is gone."""
    async with house(tmp_path) as here:
        client = await here.client()
        async with client.call(progress(steps=2)) as reader:
            start = id_of((await reader.rest())[0])
        here.sessions.event_buffer.max_bytes = 0
        async with client.call(progress(steps=1), 2) as reader:
            assert [event.said for event in await reader.rest()][1:] == steps(1)
        for event_id in ("nonsense", start.replace("-", "_"), start):
            async with client.get(event_id) as reader:
                await reader.response.aread()
                assert reader.response.status_code == 400
                assert "Last-Event-ID" in reader.response.json()["error"]["message"]


@pytest.mark.parametrize("tool", ["a__echo", "a__no_such_tool"])
async def test_there_is_nothing_after_an_answer(tmp_path: Path, tool: str) -> None:
    """Some clients come back after an error as if it were no answer; 204 tells them to stop where an empty stream
    would have them come again for ever."""
    async with house(tmp_path) as here:
        client = await here.client()
        async with client.call({"name": tool, "arguments": {}}) as reader:
            last = (await reader.rest())[-1]
        async with client.get(last.id) as reader:
            assert reader.response.status_code == 204


async def test_reading_on_takes_over_from_a_connection_that_only_looks_alive(tmp_path: Path) -> None:
    """The server may never learn that a call's connection is dead: the newest one gets what comes."""
    async with house(tmp_path) as here:
        client = await here.client()
        async with client.call(progress(steps=10, pause=0.05)) as dead:
            start = await dead.event()
            async with client.get(start.id) as first:
                await first.event()
                async with client.get(start.id) as second:
                    events = [event.said for event in await second.rest()][1:]
                    assert events == steps(10)
                for old in (dead, first):
                    old_said = [event.said for event in await old.rest()]
                    assert old_said == steps(10)[: len(old_said)]
                    assert len(old_said) < 11


async def test_a_new_standing_stream_takes_over_from_the_old_one(tmp_path: Path) -> None:
    """A client that lost its standing stream unnoticed is not locked out, and hears each notice once."""
    async with house(tmp_path) as here:
        client = await here.client()
        async with client.get() as old:
            await old.event()
            async with client.get() as new:
                assert new.response.status_code == 200
                await new.event()
                assert await old.rest() == []
                await client.text("a__change", {"add": ["new"]})
                assert (await new.event()).said == "notifications/tools/list_changed"


async def test_notices_are_kept_while_the_standing_stream_is_broken(tmp_path: Path) -> None:
    """Read on from its first event, it tells what happened meanwhile, and then what happens."""
    async with house(tmp_path) as here:
        client = await here.client()
        async with client.get() as reader:
            start = id_of(await reader.event())
        await client.text("a__change", {"add": ["one"]})
        await eventually(lambda: any(event.text for event in kept(here, start)))
        async with client.get(start) as reader:
            await reader.event()
            assert (await reader.event()).said == "notifications/tools/list_changed"
            await client.text("a__change", {"add": ["two"]})
            assert (await reader.event()).said == "notifications/tools/list_changed"


async def test_notices_from_before_the_first_standing_stream_are_not_lost(tmp_path: Path) -> None:
    """A client opens it a moment after its session, and a server may have come or gone by then."""
    async with house(tmp_path) as here:
        client = await here.client()
        (session,) = here.sessions._server_instances.values()
        start = cast("Any", session)._start
        await client.text("a__change", {"add": ["one"]})
        await eventually(lambda: any(event.text for event in kept(here, start)))
        async with client.get() as reader:
            await reader.event()
            assert (await reader.event()).said == "notifications/tools/list_changed"


def told(response: httpx2.Response) -> tuple[int, bytes, dict[str, str]]:
    """All that a response tells, but for the time."""
    return response.status_code, response.content, {k: v for k, v in response.headers.items() if k != "date"}


@pytest.mark.parametrize(
    ("owner", "other"),
    [
        ("one", "two"),
        ("one", None),
        (None, "one"),
    ],
)
async def test_a_session_is_nobody_elses(tmp_path: Path, owner: str | None, other: str | None) -> None:
    """Another principal gets for it exactly what it gets for no session at all, and changes nothing."""
    async with house(tmp_path) as here:
        known = {None: {}, "one": await here.gateway.token("one"), "two": await here.gateway.token("two")}
        client = await here.client(**known[owner])
        async with client.call(HANGS, 7) as running, client.get() as standing:
            await running.event()
            place = id_of(await standing.event())
            session = client.headers["mcp-session-id"]
            thief, nobody = (
                Client(
                    here.http, here.gateway.mcp, {**known[other], "mcp-session-id": session_id, "last-event-id": place}
                )
                for session_id in (session, "0" * len(session))
            )
            cancel = {"method": "notifications/cancelled", "params": {"requestId": 7}}
            ping = {"id": 8, "method": "ping"}
            for verb, message in (("POST", cancel), ("POST", ping), ("GET", {}), ("DELETE", {}), ("PUT", {})):
                refused = await thief.send(verb, **message)
                assert refused.status_code == 404
                assert told(refused) == told(await nobody.send(verb, **message))
            # Neither stream was taken over or ended, and the call was not cancelled.
            await client.text("b__change", {"add": ["new"]})
            assert (await standing.event()).said == "notifications/tools/list_changed"
            assert json.loads(await client.text("a__seen", {}))["cancelled"] == []
            assert here.welcomed == 1


async def test_credentials_are_neither_kept_nor_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What binds a session is its principal, and the line that tells of a refusal has no credential in it."""
    with caplog.at_level("DEBUG", "mcp"), structlog.testing.capture_logs() as logs:
        async with house(tmp_path) as here:
            mine, theirs = await here.gateway.token("mine"), await here.gateway.token("theirs")
            client = await here.client(**mine)
            client.headers |= theirs
            assert (await client.send("GET")).status_code == 404
            sessions = here.sessions
            kept_of_it = [vars(sessions), *(vars(session) for session in sessions._server_instances.values())]
            principals = [cast("Any", session).endpoint.principal for session in sessions._server_instances.values()]
            secrets = [header["authorization"].rpartition("_")[2] for header in (mine, theirs)]
    everything = f"{kept_of_it} {caplog.text} {logs}"
    assert any(entry["event"] == "session.of.another" for entry in logs)
    for word in secrets:
        assert word not in everything
    assert [principal.name for principal in principals] == ["mine"]


async def test_a_session_that_was_not_used_expires_and_is_opened_anew(tmp_path: Path) -> None:
    """After its idle limit everything of it is let go; its id is unknown, and the client starts over."""
    async with house(tmp_path) as here:
        assert here.sessions.session_idle_timeout == IDLE_LIMIT == 1800
        counts: list[int] = []
        here.gateway.front.server._on_sessions = counts.append
        here.sessions.session_idle_timeout = SHORT
        client = Client(here.http, here.gateway.mcp)
        await client.open()
        await eventually(lambda: here.nothing_is_kept() and counts == [1, 0])
        expired = client.headers["mcp-session-id"]
        for verb, message in (("POST", {"id": 1, "method": "ping"}), ("GET", {}), ("DELETE", {})):
            assert (await client.send(verb, **message)).status_code == 404
        here.sessions.session_idle_timeout = IDLE_LIMIT
        await client.open()
        assert client.headers["mcp-session-id"] != expired
        assert json.loads(await client.text("a__echo", {"x": 1})) == {"x": 1}
        assert counts == [1, 0, 1]


async def test_an_open_stream_keeps_a_session(tmp_path: Path) -> None:
    """A client that only listens does not lose its session, however long nothing happens."""
    async with house(tmp_path) as here:
        here.sessions.session_idle_timeout = SHORT
        client, quiet = (Client(here.http, here.gateway.mcp) for _ in range(2))
        await client.open()
        async with client.get() as reader:
            assert reader.response.status_code == 200
            await reader.event()
            # Meanwhile a session that nobody listens to comes and goes.
            await quiet.open()
            await eventually(lambda: len(here.sessions._server_instances) == 1)
            await client.text("a__change", {"add": ["new"]})
            assert (await reader.event()).said == "notifications/tools/list_changed"
        await eventually(here.nothing_is_kept)


async def test_a_deleted_session_is_gone_with_all_its_streams(tmp_path: Path) -> None:
    """Its standing stream, its running call and what was kept of it end; another session does not notice."""
    async with house(tmp_path) as here:
        other = await here.client()
        client = await here.client()
        assert here.welcomed == 2
        async with client.call(HANGS) as running, client.get() as standing:
            start = await running.event()
            await standing.event()
            async with client.get(start.id) as resumed:
                await resumed.event()
                assert (await client.send("DELETE")).status_code == 200
                for stream in (running, standing, resumed):
                    assert await stream.rest() == []
        for verb, message in (("POST", {"id": 1, "method": "ping"}), ("GET", {}), ("DELETE", {})):
            assert (await client.send(verb, **message)).status_code == 404
        await eventually(lambda: here.welcomed == 1)
        assert json.loads(await other.text("a__echo", {"x": 1})) == {"x": 1}
        await client.open()
        assert json.loads(await client.text("a__echo", {"x": 2})) == {"x": 2}
        for leaving in (client, other):
            assert (await leaving.send("DELETE")).status_code == 200
        await eventually(lambda: here.nothing_is_kept() and here.welcomed == 0)


async def test_an_ended_session_is_not_held_by_anything(tmp_path: Path) -> None:
    """Once deleted, not even its object is left."""
    async with house(tmp_path) as here:
        client = await here.client()
        (session,) = here.sessions._server_instances.values()
        watched = weakref.ref(session)
        del session
        async with client.call(progress(steps=2)) as reader:
            start = await reader.event()
        async with client.get(start.id) as reader:
            await reader.rest()
        await client.text("a__echo", {})
        fast_path = getattr(here.gateway.front.protocol, "fast_path", None)
        remembered = fast_path.verdicts if fast_path is not None else {}
        assert bool(remembered) == (fast_path is not None)
        assert (await client.send("DELETE")).status_code == 200

        def collected() -> bool:
            gc.collect()
            return watched() is None and not remembered

        await eventually(collected)


async def test_a_refused_opening_leaves_nothing(tmp_path: Path) -> None:
    """A first request that opens no session is not remembered."""
    async with house(tmp_path) as here:
        stranger = Client(here.http, here.gateway.mcp)
        assert (await stranger.send("GET")).status_code == 400
        assert (await stranger.send("POST", id=1, method="tools/list")).status_code == 400
        assert here.nothing_is_kept()
