"""Step-up: a tool that needs a scope, called with a token that has it and with one that has not."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from auth.door import Door, open_door
from auth.issuer import Issuer
from harness import LIMIT
from pegboard.gateway import step_up

pytestmark = pytest.mark.anyio

RULES = [{"who": ["*"], "scopes": {"one__x": ["x.write", "x.admin"], "memory_*": ["memory"]}}]


def challenge_of(answer: Any) -> str:
    assert answer.status_code == 403, answer.text
    assert answer.json()["success"] is False
    return answer.headers["www-authenticate"]


async def call_by(way: str, door: Door, token: str, tool: str) -> Any:
    """A call of a tool, by one of the ways in."""
    inner = {"name": tool, "arguments": {}}
    bearer = {"authorization": f"Bearer {token}"}
    match way:
        case "modern":
            return await door.call(token, tool)
        case "modern tool_call":
            return await door.call(token, "tool_call", arguments=inner)
        case "handshake":
            return await door.call(token, tool, session=await door.open_session(token))
        case "handshake tool_call":
            return await door.call(token, "tool_call", arguments=inner, session=await door.open_session(token))
        case "REST":
            return await door.http.post(f"/api/tools/{tool}/call", json={"arguments": {}}, headers=bearer)
        case _:
            return await door.http.post("/api/tools/tool_call/call", json={"arguments": inner}, headers=bearer)


WAYS = ("modern", "modern tool_call", "handshake", "handshake tool_call", "REST", "REST tool_call")


@pytest.mark.scenario("issuers: A call that needs more scopes is refused alone")
@pytest.mark.both_paths
@pytest.mark.parametrize("way", WAYS)
async def test_a_call_that_needs_more_is_refused_alone(tmp_path: Path, issuer: Issuer, way: str) -> None:
    """All scopes are named at once, also those that it has; the next call, and one with them, go on."""
    async with open_door(tmp_path, issuer, rules=RULES, toolsets=["discovery"]) as door:
        weak, strong = door.token(scope="mcp x.write"), door.token(scope="x.write x.admin")
        for _ in range(2):
            challenge = challenge_of(await call_by(way, door, weak, "one__x"))
            assert 'error="insufficient_scope"' in challenge
            assert 'scope="x.admin x.write"' in challenge
            assert f'resource_metadata="{door.gateway.url}/.well-known/oauth-protected-resource/mcp"' in challenge
            assert (await call_by(way, door, weak, "one__y")).status_code == 200
            answer = await call_by(way, door, strong, "one__x")
            assert (answer.status_code, "toy:x" in answer.text) == (200, True)


@pytest.mark.both_paths
async def test_a_better_token_goes_on_in_the_same_session(tmp_path: Path, issuer: Issuer) -> None:
    """As a client does after it has stepped up."""
    async with open_door(tmp_path, issuer, rules=RULES) as door:
        weak, strong = door.token(), door.token(scope="mcp x.write x.admin")
        session = await door.open_session(weak)
        challenge_of(await door.call(weak, session=session))
        assert "toy:x" in (await door.call(strong, session=session)).text
        challenge_of(await door.call(weak, session=session))


@pytest.mark.scenario("issuers: A call that needs more scopes is refused alone")
@pytest.mark.both_paths
@pytest.mark.parametrize("method", ["tools\\/call", "tools/call"])
async def test_a_body_that_is_written_oddly_is_no_way_around(tmp_path: Path, issuer: Issuer, method: str) -> None:
    """Escapes, members that come twice, batches, and a name that is none."""
    async with open_door(tmp_path, issuer, rules=RULES) as door:
        weak = door.token()
        session = await door.open_session(weak)
        params = [
            r'{"name":"one\u005f_x"}',
            '{"name":"one__y","name":"one__x"}',
            '{"name":"one__x","arguments":{"a":1e999}}',
        ]
        for each in params:
            body = f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{each}}}'
            headers = {
                "accept": "application/json, text/event-stream",
                "content-type": "application/json",
                "mcp-session-id": session,
                "authorization": f"Bearer {weak}",
            }
            answer = await door.http.post("/mcp", content=body, headers=headers)
            assert 'scope="x.admin x.write"' in challenge_of(answer)


@pytest.mark.both_paths
async def test_whatever_the_first_look_misses_is_refused_by_the_second(
    tmp_path: Path, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the tool is called, in the words of the tool layer."""
    monkeypatch.setattr(step_up, "_needs_scopes", lambda _: False)
    async with open_door(tmp_path, issuer, rules=RULES, toolsets=["discovery", "memory"]) as door:
        for way in WAYS:
            answer = await call_by(way, door, door.token(), "one__x")
            assert "toy:x" not in answer.text
            assert "needs a token with these scopes: x.admin x.write" in answer.text


async def test_own_tools_need_scopes_on_their_own_routes(tmp_path: Path, issuer: Issuer) -> None:
    """A route of REST that stands for a tool is that tool."""
    async with open_door(tmp_path, issuer, rules=RULES, toolsets=["discovery", "memory"]) as door:
        assert (await door.get("/api/memories", door.token())).status_code == 403
        assert (await door.get("/api/memories", door.token(scope="memory"))).status_code == 200


async def test_a_large_body_is_bounded_as_ever(tmp_path: Path, issuer: Issuer) -> None:
    """Too many values are refused, few are not."""
    async with open_door(tmp_path, issuer, rules=RULES) as door:
        token = door.token()
        answer = await door.call(token, "one__y", arguments={"a": [[]] * 120_000})
        assert answer.status_code == 413
        assert (await door.call(token, "one__y", arguments={"a": [[]] * 20_000})).status_code == 200


async def test_a_name_that_never_was_is_told_apart_by_nothing(tmp_path: Path, issuer: Issuer) -> None:
    """What a rule hides and what is not there get the same answer, where both fit a pattern of scopes and where not."""
    rules = [{"who": ["*"], "tools": {"deny": ["one__x"]}, "scopes": {"*__x": ["s"], "*__z": ["s"]}}]
    async with open_door(tmp_path, issuer, rules=rules) as door:
        hidden, never = await door.call(door.token(), "one__x"), await door.call(door.token(), "one__z")
        assert (hidden.status_code, json.loads(hidden.text)) == (never.status_code, json.loads(never.text))
        assert hidden.headers["www-authenticate"] == never.headers["www-authenticate"]


@pytest.mark.both_paths
async def test_a_refusal_for_scopes_is_recorded(
    tmp_path: Path, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With who it was, by the first look and by the second."""
    async with open_door(tmp_path, issuer, rules=[{**RULES[0], "admin": True}], audit={}) as door:
        token = door.token()
        challenge_of(await door.call(token))
        monkeypatch.setattr(step_up, "_needs_scopes", lambda _: False)
        assert "needs a token" in (await door.call(token)).text

        async def records() -> list[dict[str, Any]]:
            told = (await door.get("/api/calls?denied=true", token)).json()["data"]["records"]
            return [each for each in told if "insufficient_scope" in each["outcome"]]

        async with asyncio.timeout(LIMIT):
            while len(await records()) < 2:
                await asyncio.sleep(0.05)
        assert {"alice" in json.dumps(each) for each in await records()} == {True}
