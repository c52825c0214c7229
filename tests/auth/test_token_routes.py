"""Tokens over REST: for administrators alone, and a token is in an answer once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from auth.asking import ask_modern
from harness import LIMIT, Gateway, open_gateway, toy

pytestmark = pytest.mark.anyio


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncGenerator[Gateway]:
    """A gateway in front of one server."""
    async with open_gateway(tmp_path, {"one": toy()}) as opened:
        yield opened


@pytest.fixture
async def http(gateway: Gateway) -> AsyncGenerator[httpx2.AsyncClient]:
    """This machine's own user, who is an administrator."""
    async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    """The header of a token."""
    return {"Authorization": f"Bearer {token}"}


async def test_a_token_is_made_listed_rotated_and_removed(http: httpx2.AsyncClient) -> None:
    """The list has everything but what lets somebody in."""
    rule = {"servers": ["one"], "readOnly": True, "rate": "60/m", "inFlight": 2}
    made = await http.post("/api/tokens", json={"name": "ci", "rule": rule, "expires": "30d"})
    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
    data = made.json()["data"]
    token = data.pop("token")
    assert token.startswith("pgb_")
    assert data["rule"] == rule
    assert (await http.get("/api/tokens/ci")).json()["data"] == data
    assert set(data.pop("gives")) == {"tools", "of", "servers", "toolsets", "notAsked"}
    assert (await http.get("/api/tokens")).json()["data"] == {"tokens": [data]}
    assert set(data) == {"id", "name", "rule", "mayUse", "createdAt", "expiresAt", "lastUsedAt", "state"}
    rotated = (await http.post("/api/tokens/ci/rotate")).json()["data"]
    assert rotated["token"] != token
    assert rotated["id"] == data["id"]
    listed = (await http.get("/api/tokens")).text
    assert "pgb_" not in listed
    assert "digest" not in listed
    assert (await http.delete("/api/tokens/ci")).json()["data"] == {"removed": "ci"}
    assert (await http.get("/api/tokens")).json()["data"] == {"tokens": []}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("POST", "/api/tokens", {}, 400, "name is needed"),
        ("POST", "/api/tokens", {"name": 5}, 400, "name is needed"),
        ("POST", "/api/tokens", {"name": "there"}, 409, "pegboard token rotate there"),
        ("POST", "/api/tokens", {"name": "x", "expire": "30d"}, 400, "did you mean expires"),
        ("POST", "/api/tokens", {"name": "x", "expires": 30}, 400, "expires must be a text"),
        ("POST", "/api/tokens", {"name": "x", "expires": "2001-01-01"}, 400, "must be in the future"),
        ("POST", "/api/tokens", {"name": "x", "rule": {"inFlight": 0}}, 400, "rule: inFlight must be a whole number"),
        ("POST", "/api/tokens/their/rotate", {}, 404, "did you mean there"),
        ("DELETE", "/api/tokens/nobody", None, 404, "there is no token 'nobody'"),
        ("GET", "/api/tokens?all=1", None, 400, "is not a parameter"),
    ],
)
async def test_what_is_wrong_is_said(
    http: httpx2.AsyncClient, method: str, path: str, body: Any, status: int, words: str
) -> None:
    """And changes nothing."""
    before = (await http.post("/api/tokens", json={"name": "there"})).json()["data"]
    answer = await http.request(method, path, **({} if body is None else {"json": body}))
    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"]["message"]
    (row,) = (await http.get("/api/tokens")).json()["data"]["tokens"]
    assert row["id"] == before["id"]


@pytest.mark.scenario("access: What is for admins is refused to others")
@pytest.mark.parametrize("rule", [{}, {"servers": ["*"]}, {"readOnly": True}])
async def test_a_token_that_is_no_admin_changes_no_tokens(http: httpx2.AsyncClient, rule: dict[str, Any]) -> None:
    """It does not even see them."""
    weak = bearer((await http.post("/api/tokens", json={"name": "weak", "rule": rule})).json()["data"]["token"])
    for method, path in (
        ("GET", "/api/tokens"),
        ("POST", "/api/tokens"),
        ("POST", "/api/tokens/weak/rotate"),
        ("GET", "/api/tokens/weak"),
        ("PATCH", "/api/tokens/weak"),
        ("GET", "/api/rules"),
        ("DELETE", "/api/tokens/weak"),
        ("DELETE", "/api/tokens/nobody"),
    ):
        body: dict[str, Any] = (
            {"json": {"name": "strong", "rule": {"admin": True}}} if method in {"POST", "PATCH"} else {}
        )
        answer = await http.request(method, path, headers=weak, **body)
        assert answer.status_code == 403, (method, path)
        assert "weak" not in answer.text
    assert len((await http.get("/api/tokens")).json()["data"]["tokens"]) == 1


async def test_an_admins_token_changes_tokens(http: httpx2.AsyncClient, gateway: Gateway) -> None:
    """Also its own: whoever rotates it is told the new one, and whoever removes it is told that."""
    made = await http.post("/api/tokens", json={"name": "boss", "rule": {"admin": True}})
    boss = bearer(made.json()["data"]["token"])
    assert (await http.post("/api/tokens", json={"name": "ci"}, headers=boss)).status_code == 201
    rotated = await http.post("/api/tokens/boss/rotate", headers=boss)
    assert rotated.status_code == 200
    assert (await http.get("/api/tokens", headers=boss)).status_code == 401
    boss = bearer(rotated.json()["data"]["token"])
    assert (await ask_modern(http, gateway.mcp, boss, "tools/list")).status_code == 200
    removed = await http.delete("/api/tokens/boss", headers=boss)
    assert (removed.status_code, removed.json()["data"]) == (200, {"removed": "boss"})
    assert (await http.get("/api/tokens", headers=boss)).status_code == 401


async def test_an_expired_token_is_listed_until_it_is_removed(http: httpx2.AsyncClient, gateway: Gateway) -> None:
    """As expired."""
    await gateway.token("old", expires_at=1.0)
    (row,) = (await http.get("/api/tokens")).json()["data"]["tokens"]
    assert (row["name"], row["state"], row["expiresAt"]) == ("old", "expired", "1970-01-01T00:00:01+00:00")


async def test_changes_of_tokens_are_recorded(tmp_path: Path) -> None:
    """Who made, rotated and removed which; nothing of its secret."""
    async with open_gateway(tmp_path, {}, audit={"keep": 1}) as gateway:
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            made = (await http.post("/api/tokens", json={"name": "ci"})).json()["data"]["token"]
            await http.post("/api/tokens/ci/rotate", json={})
            await http.delete("/api/tokens/ci")

            async def kinds() -> list[str]:
                records = (await http.get("/api/calls?kind=token.*")).json()["data"]["records"]
                assert made not in json.dumps(records)
                assert {record["detail"] for record in records} <= {"ci"}
                return [record["kind"] for record in records]

            async with asyncio.timeout(LIMIT):
                while await kinds() != ["token.removed", "token.rotated", "token.added"]:
                    await asyncio.sleep(0.05)
