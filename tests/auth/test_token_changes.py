"""A token that is changed: its rule, expiry and name, from the next request on, all of it or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from bearers import principal_of
from harness import LIMIT, Gateway, eventually, http_client, open_gateway, toy
from pegboard.gateway.fastpath.decline import Decline
from pegboard.gateway.fastpath.rules import is_open
from pegboard.servers.errors import RpcError

pytestmark = pytest.mark.anyio

SERVERS = {"one": toy(name="one"), "two": toy(name="two")}
OWN: dict[str, Any] = {"expose": "all", "toolsets": ["discovery"], "audit": {}}


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncGenerator[Gateway]:
    """A gateway in front of two servers, with a rule for one token."""
    rules = [{"who": ["local"], "admin": True}, {"who": ["token:robot"], "servers": ["two"]}]
    async with open_gateway(tmp_path, SERVERS, auth={"rules": rules}, **OWN) as opened:
        await opened.board.refresh()
        yield opened


@pytest.fixture
async def http(gateway: Gateway) -> AsyncGenerator[httpx2.AsyncClient]:
    """This machine's own user, who is an administrator."""
    async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as client:
        yield client


async def make(http: httpx2.AsyncClient, name: str = "ci", **rule: Any) -> tuple[dict[str, str], dict[str, Any]]:
    """The header of a new token, and what is said of it."""
    data = (await http.post("/api/tokens", json={"name": name, "rule": rule})).json()["data"]
    return {"authorization": f"Bearer {data.pop('token')}"}, data


async def change(http: httpx2.AsyncClient, name: str, /, **changes: Any) -> Any:
    """What the gateway says of it now."""
    answer = await http.patch(f"/api/tokens/{name}", json=changes)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def test_what_is_given_changes_and_the_rest_stays(http: httpx2.AsyncClient) -> None:
    """A list replaces the one before; null takes a limit off, also one inside of another."""
    rule: dict[str, Any] = {
        "servers": ["one"],
        "tools": {"allow": ["*__echo"], "deny": ["*__x"]},
        "rate": "60/m",
        "readOnly": True,
    }
    _, made = await make(http, **rule)
    changed = await change(http, "ci", rule={"servers": ["two"], "rate": None, "tools": {"deny": None}})
    assert changed["rule"] == {"servers": ["two"], "tools": {"allow": ["*__echo"]}, "readOnly": True}
    assert {changed[key] == made[key] for key in ("id", "name", "createdAt", "expiresAt")} == {True}
    assert (await change(http, "ci", rule={"tools": None, "readOnly": False}))["rule"] == {"servers": ["two"]}
    assert (await change(http, "ci", expires="30d"))["expiresAt"] is not None
    assert (await change(http, "ci", rule={"inFlight": 2}))["expiresAt"] is not None
    assert (await change(http, "ci", expires=None))["expiresAt"] is None
    assert (await change(http, "ci", expires="30d", name="robot"))["name"] == "robot"
    assert (await change(http, "robot", expires="never"))["expiresAt"] is None
    (row,) = (await http.get("/api/tokens")).json()["data"]["tokens"]
    shown = (await http.get("/api/tokens/robot")).json()["data"]
    assert {**shown, "gives": None} == {**row, "gives": None}
    assert shown["configRule"] == {"number": 2, "rule": {"who": ["token:robot"], "servers": ["two"]}} | {
        "mayUse": "servers two"
    }


@pytest.mark.parametrize(
    ("name", "changes", "status", "words"),
    [
        ("ci", {}, 400, "there is nothing to change: send name, rule, expires"),
        ("ci", {"rules": {}}, 400, "did you mean rule?"),
        ("ci", {"rule": []}, 400, "rule must be an object"),
        ("ci", {"rule": {"server": ["x"]}}, 400, "did you mean servers?"),
        ("ci", {"rule": {"who": ["local"]}}, 400, "who is for rules of the config"),
        ("ci", {"name": "a b"}, 400, "a token's name has letters"),
        ("ci", {"name": 5}, 400, "name must be a text"),
        ("ci", {"name": "other", "rule": {"rate": "9/m"}}, 409, "there is a token 'other' already"),
        ("ci", {"expires": "yesterday", "name": "new"}, 400, "expires must be a time"),
        ("otter", {"name": "new"}, 404, "there is no token 'otter': did you mean other?"),
    ],
)
async def test_a_change_that_is_wrong_changes_nothing(
    http: httpx2.AsyncClient, name: str, changes: dict[str, Any], status: int, words: str
) -> None:
    """Not even what is right about it."""
    await make(http, servers=["one"])
    await make(http, "other")
    before = (await http.get("/api/tokens")).json()
    answer = await http.patch(f"/api/tokens/{name}", json=changes)
    assert (answer.status_code, words in answer.json()["error"]["message"]) == (status, True), answer.text
    assert (await http.get("/api/tokens")).json() == before


async def test_changes_at_once_are_all_made(http: httpx2.AsyncClient) -> None:
    """Each reads what the one before has written."""
    await make(http)
    members: list[dict[str, Any]] = [{"rate": "9/m"}, {"inFlight": 3}, {"servers": ["one"]}, {"readOnly": True}]
    await asyncio.gather(*(change(http, "ci", rule=each) for each in members))
    assert (await http.get("/api/tokens/ci")).json()["data"]["rule"] == {
        key: value for each in members for key, value in each.items()
    }


@pytest.mark.both_paths
async def test_a_changed_rule_holds_on_the_next_request(gateway: Gateway, http: httpx2.AsyncClient) -> None:
    """A session goes on, and is told that its list is another; a call that is under way finishes."""
    headers, _ = await make(http, inFlight=9)
    principal = principal_of(gateway, headers)
    async with http_client(gateway.mcp, headers=headers) as client:
        await client.until_in("tools", "two__echo")
        told = client.changes()
        under_way = asyncio.create_task(client.call("two__sleep", {"seconds": 3}))
        await eventually(lambda: gateway.board.limits.in_flight(principal) == 1)
        # What begins on the fast path and takes long is handed over, for which its tool is looked for once more.
        await eventually(lambda: not is_open() or gateway.board.metrics.declined[Decline.HANDED_OVER])
        await change(http, "ci", rule={"servers": ["one"]})
        await client.until_changes(told + 1)
        with pytest.raises(RpcError, match="Unknown tool"):
            await client.call("two__echo", {})
        assert "isError" not in await under_way
        assert "isError" not in await client.call("one__echo", {})
        assert "two__echo" not in await client.names()
        await change(http, "ci", rule={"servers": None}, name="wide")
        assert "isError" not in await client.call("two__echo", {})


async def test_subscriptions_are_opened_anew_under_another_rule(gateway: Gateway, http: httpx2.AsyncClient) -> None:
    """What a stream of notices may tell follows from the rule under which it was opened, so it ends."""
    from auth.asking import ends, modern_request, open_stream

    headers, _ = await make(http)
    message, given = modern_request("subscriptions/listen", notifications={"toolsListChanged": True})
    async with open_stream(http, "POST", gateway.mcp, {**given, **headers}, json=message) as stream:
        assert not stream.done()
        await change(http, "ci", rule={"servers": ["one"]})
        await ends(stream)


async def test_a_time_to_expire_that_is_nearer_ends_streams_by_then(gateway: Gateway, http: httpx2.AsyncClient) -> None:
    """Also those that were opened before."""
    from auth.asking import ends, open_session, open_stream

    headers, _ = await make(http)
    session = await open_session(http, gateway.mcp, headers)
    async with open_stream(http, "GET", gateway.mcp, {**session, **headers}) as stream:
        await change(http, "ci", expires="1s")
        await ends(stream)


async def test_a_change_is_recorded(http: httpx2.AsyncClient) -> None:
    """Who made it, of which token, and what is another way now; what stays is not in it."""
    await make(http, rate="60/m", servers=["two"])
    await change(http, "ci", rule={"servers": ["one"], "rate": None, "readOnly": True}, expires="2100-01-01")
    await change(http, "ci", rule={"servers": ["one"]}, name="robot")
    await change(http, "robot", expires="never", rule={"tools": {"deny": ["*__wipe"]}})
    records = (await http.get("/api/calls", params={"kind": "token.changed"})).json()["data"]["records"]
    assert [(record["principal"]["name"], record["detail"]) for record in reversed(records)] == [
        ("local", 'ci: servers ["one"], readOnly true, rate cleared, expires 2100-01-01T00:00:00+00:00'),
        ("local", "ci: name robot"),
        ("local", 'robot: tools {"deny":["*__wipe"]}, expires never'),
    ]


async def test_what_a_token_is_given_is_counted(http: httpx2.AsyncClient) -> None:
    """Of all that there are; what its rule names that there is not is said."""
    _, everything = await make(http)
    assert everything["gives"]["tools"] == everything["gives"]["of"] > 10
    assert everything["gives"]["servers"] == ["one", "two"]
    _, half = await make(http, "half", servers=["one", "towo"])
    every = everything["gives"]["of"]
    finding = everything["gives"]["finding"]
    rest = {"of": every, "finding": finding, "toolsets": []}
    assert half["gives"] == {"tools": (every + finding) // 2, "servers": ["one"], **rest}
    assert half["remarks"] == ['servers: there is no server "towo"; did you mean two?']
    _, nothing = await make(http, "nothing", servers=[])
    assert nothing["gives"] == {"tools": finding, "servers": [], **rest}


async def test_everybody_may_ask_who_they_are(gateway: Gateway, http: httpx2.AsyncClient) -> None:
    """With what is left of their limits; of what is kept from them neither names nor numbers."""
    local = (await http.get("/api/whoami")).json()["data"]
    assert (local["kind"], local["admin"], local["mayUse"]) == ("local", True, "everything; admin")
    rule: dict[str, Any] = {
        "tools": {"deny": ["two__*"]},
        "rate": "5/h",
        "inFlight": 3,
        "perServer": {"one": {"rate": "2/h"}},
    }
    headers, _ = await make(http, **rule)
    async with http_client(gateway.mcp, headers=headers) as client:
        await client.call("one__echo", {})
    answer = await http.get("/api/whoami", headers=headers)
    assert "two" not in answer.text
    data = answer.json()["data"]
    assert (data["kind"], data["name"], data["admin"]) == ("token", "ci", False)
    assert data["mayUse"] == "not all tools; 5/h; 3 at once; one 2/h"
    assert data["limits"] == [
        {"limit": "5/h", "left": 4},
        {"limit": "3 at once", "left": 3},
        {"limit": "2/h", "left": 1, "server": "one"},
    ]
    every, finding = local["gives"]["of"], local["gives"]["finding"]
    shown = {"tools": (every + finding) // 2, "finding": finding, "servers": ["one"], "toolsets": []}
    assert data["gives"] == shown
    assert (await http.get("/api/whoami", headers={"authorization": "Bearer x"})).status_code == 401


async def test_rules_that_name_what_there_is_not_are_said_once(
    gateway: Gateway, http: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    """In the log of the gateway, and by REST."""
    rules = [{"who": ["token:cii"], "servers": ["oen"]}, {"who": ["local"], "admin": True}]

    def said() -> list[str]:
        return [record.getMessage() for record in caplog.records if "rule.remark" in record.getMessage()]

    await make(http)
    with caplog.at_level("WARNING", "pegboard"):
        for _ in range(2):
            await gateway.configure(SERVERS, auth={"rules": rules}, **OWN)
            await eventually(lambda: len(said()) >= 2)
            await gateway.configure({**SERVERS}, auth={"rules": rules}, **{**OWN, "boardSize": 30})
        await gateway.front._reviews.wait()
    assert len(said()) == 2
    first, second = (await http.get("/api/rules")).json()["data"]["rules"]
    assert first["remarks"] == [
        'who: there is no token "cii"; did you mean ci?',
        'servers: there is no server "oen"; did you mean one?',
    ]
    assert (first["number"], first["mayUse"], second["remarks"]) == (1, "servers oen", [])
