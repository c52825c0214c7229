"""Subscriptions: many clients, one subscription at the server, and everyone hears its own name of the resource."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.clients.caller import Caller
from pegboard.clients.client import Client
from pegboard.config import ServerSpec
from pegboard.relay.subscriptions import Subscriptions
from pegboard.result import unavailable
from pegboard.servers.errors import RpcError
from pegboard.servers.server import Server

pytestmark = pytest.mark.anyio

URI = "file:///notes"


class FakeServer:
    """A server that remembers what it was subscribed to, and takes its time."""

    def __init__(self, name: str = "toy", *, per_session: bool = False) -> None:
        self.name = name
        self.per_session = per_session
        self.redactor = ServerSpec(name=name, given_name=name).redactor
        self.log: list[tuple[str, str | None, str]] = []
        self.subscribed: set[tuple[str | None, str]] = set()
        self.told: list[Mapping[str, Any] | None] = []
        self.failure: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self._busy = False

    def key_for(self, session: str | None, principal_id: str) -> str | None:
        del principal_id
        return session if self.per_session else None

    async def subscribe(self, key: str | None, uri: str, capabilities: Mapping[str, Any] | None = None) -> None:
        self.told.append(capabilities)
        await self._change("subscribe", key, uri)
        self.subscribed.add((key, uri))

    async def unsubscribe(self, key: str | None, uri: str) -> None:
        await self._change("unsubscribe", key, uri)
        self.subscribed.discard((key, uri))

    async def _change(self, what: str, key: str | None, uri: str) -> None:
        assert not self._busy, "one change at a time"
        self._busy = True
        try:
            await self.gate.wait()
            await asyncio.sleep(0)
            if self.failure is not None:
                raise self.failure
            self.log.append((what, key, uri))
        finally:
            self._busy = False


def real(server: FakeServer) -> Server:
    """What the types want it to be."""
    return cast("Server", server)


class Ear:
    """A client that hears of resources."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []

    def __call__(self, params: Any) -> None:
        self.heard.append(dict(params))

    @property
    def uris(self) -> list[str]:
        return [params["uri"] for params in self.heard]


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
async def subscriptions() -> AsyncGenerator[Subscriptions]:
    """None yet; in the end no task is left."""
    subscriptions = Subscriptions()
    yield subscriptions
    await subscriptions.close()
    assert not subscriptions._tasks


@pytest.fixture
def server() -> FakeServer:
    """One shared server."""
    return FakeServer()


async def add(
    subscriptions: Subscriptions,
    server: FakeServer,
    uri: str = URI,
    *,
    session: str | None = "a",
    name: str | None = None,
    ear: Ear | None = None,
) -> Callable[[], None]:
    return await subscriptions.add(real(server), Caller(Client(session=session)), uri, name or uri, ear or Ear())


async def test_a_server_sees_one_subscription_however_many_want_it(
    subscriptions: Subscriptions, server: FakeServer
) -> None:
    """The first one subscribes, the last one unsubscribes, and all are told meanwhile."""
    ears = [Ear(), Ear(), Ear()]
    releases = [await add(subscriptions, server, session=str(number), ear=ear) for number, ear in enumerate(ears)]
    subscriptions.publish(real(server), None, {"uri": URI})
    for release in releases[:2]:
        release()
    await settle()
    assert server.log == [("subscribe", None, URI)]
    subscriptions.publish(real(server), None, {"uri": URI})
    releases[2]()
    await settle()
    assert server.log == [("subscribe", None, URI), ("unsubscribe", None, URI)]
    subscriptions.publish(real(server), None, {"uri": URI})
    assert [len(ear.heard) for ear in ears] == [1, 1, 2]


async def test_everyone_hears_of_it_under_its_own_name(subscriptions: Subscriptions, server: FakeServer) -> None:
    """What came with the notice stays; only the URI is the one that the client knows."""
    plain, aliased = Ear(), Ear()
    await add(subscriptions, server, ear=plain)
    await add(subscriptions, server, name=f"pegboard://toy/{URI}", ear=aliased)
    subscriptions.publish(real(server), None, {"uri": URI, "title": "x", "_meta": {"y": 1}})
    assert plain.heard == [{"uri": URI, "title": "x", "_meta": {"y": 1}}]
    assert aliased.heard == [{"uri": f"pegboard://toy/{URI}", "title": "x", "_meta": {"y": 1}}]


@pytest.mark.parametrize(
    ("subscribed", "changed", "told"),
    [
        ("file:///a", "file:///a", True),
        ("file:///a", "file:///a/b", True),
        ("file:///a/", "file:///a/b/c", True),
        ("file:///a/", "file:///a/", True),
        ("file:///a", "file:///ab", False),
        ("file:///a/b", "file:///a", False),
        ("file:///a", "file:///A", False),
        ("file:///a/", "file:///a", False),
    ],
)
async def test_a_part_of_what_was_subscribed_to_is_told(
    subscriptions: Subscriptions, server: FakeServer, subscribed: str, changed: str, told: bool
) -> None:
    """A subscription to a folder covers what is in it, not what merely begins alike."""
    ear = Ear()
    await add(subscriptions, server, subscribed, ear=ear)
    subscriptions.publish(real(server), None, {"uri": changed})
    assert ear.uris == ([changed] if told else [])


@pytest.mark.parametrize(
    ("subscribed", "changed", "told"),
    [
        ("file:///a", "file:///a", "pegboard://toy/file:///a"),
        ("file:///a", "file:///a/b", "pegboard://toy/file:///a/b"),
        ("file:///a/", "file:///a/b/c", "pegboard://toy/file:///a/b/c"),
    ],
)
async def test_a_part_is_told_under_the_name_of_the_whole(
    subscriptions: Subscriptions, server: FakeServer, subscribed: str, changed: str, told: str
) -> None:
    """Whoever knows a folder by an alias knows what is in it by that alias, too, and can read it so."""
    ear = Ear()
    await add(subscriptions, server, subscribed, name=f"pegboard://toy/{subscribed}", ear=ear)
    subscriptions.publish(real(server), None, {"uri": changed})
    assert ear.uris == [told]


async def test_a_sessions_own_process_is_told_what_its_client_can_do(subscriptions: Subscriptions) -> None:
    """A subscription may be the first thing that a session wants of it."""
    server = FakeServer(per_session=True)
    caller = Caller(Client(session="a", capabilities={"roots": {}}))
    await subscriptions.add(real(server), caller, URI, URI, Ear())
    assert (server.told, server.log) == ([{"roots": {}}], [("subscribe", "a", URI)])


@pytest.mark.parametrize("params", [{}, {"uri": None}, {"uri": 5}, {"uri": [URI]}])
async def test_a_notice_of_nothing_is_for_nobody(
    subscriptions: Subscriptions, server: FakeServer, params: dict[str, Any]
) -> None:
    """A server's odd notice harms nobody."""
    ear = Ear()
    await add(subscriptions, server, ear=ear)
    subscriptions.publish(real(server), None, params)
    assert ear.heard == []


async def test_servers_and_sessions_are_kept_apart(subscriptions: Subscriptions) -> None:
    """The same URI of another server, or of another session's own process, is another resource."""
    shared, own = FakeServer("shared"), FakeServer("own", per_session=True)
    ears = {name: Ear() for name in ("shared", "a", "b")}
    await add(subscriptions, shared, ear=ears["shared"])
    for session in ("a", "b"):
        await add(subscriptions, own, session=session, ear=ears[session])
    assert own.log == [("subscribe", "a", URI), ("subscribe", "b", URI)]
    subscriptions.publish(real(own), "b", {"uri": URI})
    subscriptions.publish(real(own), None, {"uri": URI})
    subscriptions.publish(real(FakeServer("shared")), None, {"uri": URI})
    assert {name: len(ear.heard) for name, ear in ears.items()} == {"shared": 0, "a": 0, "b": 1}


async def test_releasing_twice_ends_nobody_elses(subscriptions: Subscriptions, server: FakeServer) -> None:
    """Each release is good for its own listener, once."""
    ear = Ear()
    first = await add(subscriptions, server)
    await add(subscriptions, server, ear=ear)
    for _ in range(3):
        first()
    await settle()
    subscriptions.publish(real(server), None, {"uri": URI})
    assert (len(ear.heard), server.log) == (1, [("subscribe", None, URI)])


async def test_a_refusal_leaves_nothing_behind(subscriptions: Subscriptions, server: FakeServer) -> None:
    """The next one tries again, and nobody is told of what was never subscribed to."""
    ear = Ear()
    server.failure = RpcError(-32601, "no")
    with pytest.raises(RpcError):
        await add(subscriptions, server, ear=ear)
    server.failure = None
    subscriptions.publish(real(server), None, {"uri": URI})
    assert ear.heard == []
    await add(subscriptions, server, ear=ear)
    assert server.log == [("subscribe", None, URI)]


async def test_giving_up_while_subscribing_leaves_nothing_behind(
    subscriptions: Subscriptions, server: FakeServer
) -> None:
    """A client that goes away in the middle holds up nobody after it."""
    server.gate.clear()
    waiting = asyncio.create_task(add(subscriptions, server))
    await settle()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    server.gate.set()
    await add(subscriptions, server)
    assert server.log == [("subscribe", None, URI)]


@pytest.mark.parametrize("failure", [RpcError(-32601, "no"), unavailable("gone")])
async def test_a_server_that_will_not_unsubscribe_is_no_trouble(
    subscriptions: Subscriptions, server: FakeServer, failure: Exception
) -> None:
    """It is over here all the same, and a new subscription is a new one."""
    release = await add(subscriptions, server)
    server.failure = failure
    release()
    await settle()
    server.failure = None
    await add(subscriptions, server)
    assert server.log == [("subscribe", None, URI)] * 2


async def test_who_comes_while_the_last_one_leaves_is_not_forgotten(
    subscriptions: Subscriptions, server: FakeServer
) -> None:
    """Changes of one server happen one after another: the end of the old cannot overtake the beginning of the new."""
    ear = Ear()
    release = await add(subscriptions, server)
    server.gate.clear()
    release()
    await settle()
    coming = asyncio.create_task(add(subscriptions, server, ear=ear))
    await settle()
    server.gate.set()
    await coming
    await settle()
    assert server.subscribed == {(None, URI)}
    subscriptions.publish(real(server), None, {"uri": URI})
    assert len(ear.heard) == 1


async def test_a_server_that_was_replaced_is_subscribed_to_anew(subscriptions: Subscriptions) -> None:
    """Its name is the same, its memory is not; ending the old one does not end the new."""
    old, new = FakeServer(), FakeServer()
    release = await add(subscriptions, old)
    ear = Ear()
    await add(subscriptions, new, ear=ear)
    assert new.log == [("subscribe", None, URI)]
    release()
    await settle()
    subscriptions.publish(real(new), None, {"uri": URI})
    assert (len(ear.heard), new.subscribed) == (1, {(None, URI)})


async def test_a_server_that_was_taken_out_is_dropped(subscriptions: Subscriptions) -> None:
    """Under all its names and sessions, nobody hears of it and nothing is sent to it; others are left alone."""
    gone, other = FakeServer("gone", per_session=True), FakeServer("other")
    ears = {name: Ear() for name in ("a", "b", "other")}
    release = await add(subscriptions, gone, name="x://alias", session="a", ear=ears["a"])
    await add(subscriptions, gone, session="b", ear=ears["b"])
    await add(subscriptions, other, ear=ears["other"])
    assert subscriptions.drop("gone") == {"x://alias", URI}
    assert subscriptions.drop("gone") == set()
    for key in ("a", "b"):
        subscriptions.publish(real(gone), key, {"uri": URI})
    subscriptions.publish(real(other), None, {"uri": URI})
    release()
    await settle()
    assert {name: len(ear.heard) for name, ear in ears.items()} == {"a": 0, "b": 0, "other": 1}
    assert [what for what, *_ in gone.log] == ["subscribe", "subscribe"]


async def test_a_server_that_was_dropped_can_be_subscribed_to_anew(
    subscriptions: Subscriptions, server: FakeServer
) -> None:
    """The end of an old subscription does not end the new one."""
    ear = Ear()
    release = await add(subscriptions, server)
    subscriptions.drop(server.name)
    await add(subscriptions, server, ear=ear)
    release()
    await settle()
    subscriptions.publish(real(server), None, {"uri": URI})
    assert (len(ear.heard), server.log) == (1, [("subscribe", None, URI)] * 2)


async def test_a_listener_may_leave_while_it_is_told(subscriptions: Subscriptions, server: FakeServer) -> None:
    """The others are told all the same."""
    releases: list[Callable[[], None]] = []
    ear = Ear()

    def leaves(_: object) -> None:
        releases[0]()

    releases.append(await subscriptions.add(real(server), Caller(Client(session="a")), URI, URI, leaves))
    await add(subscriptions, server, ear=ear)
    subscriptions.publish(real(server), None, {"uri": URI})
    assert len(ear.heard) == 1


async def test_closing_leaves_no_task(server: FakeServer) -> None:
    """Not even one that waits for a server which does not answer."""
    subscriptions = Subscriptions()
    release = await add(subscriptions, server)
    server.gate.clear()
    release()
    await settle()
    assert len(subscriptions._tasks) == 1
    await subscriptions.close()
    await settle()
    assert not subscriptions._tasks


STEPS = st.lists(st.tuples(st.sampled_from(["add", "add", "release", "pause"]), st.integers(0, 3)), max_size=30)


@settings(deadline=None)
@given(STEPS)
def test_the_server_is_subscribed_to_exactly_what_is_wanted(steps: list[tuple[str, int]]) -> None:
    """In every order of coming and going, however it falls between the server's answers."""

    async def story() -> None:
        server, subscriptions = FakeServer(), Subscriptions()
        held: list[tuple[str, Callable[[], None]]] = []
        adding: list[asyncio.Task[Callable[[], None]]] = []

        async def join(uri: str) -> Callable[[], None]:
            release = await add(subscriptions, server, uri)
            held.append((uri, release))
            return release

        for what, number in steps:
            if what == "add":
                adding.append(asyncio.create_task(join(f"file:///{number}")))
            elif what == "release" and held:
                held.pop(number % len(held))[1]()
            else:
                for _ in range(number):
                    await asyncio.sleep(0)
        await asyncio.gather(*adding)
        await asyncio.gather(*subscriptions._tasks)
        assert server.subscribed == {(None, uri) for uri, _ in held}
        assert len(subscriptions._subscribed) == len(server.subscribed)

    asyncio.run(story())
