"""Servers added, checked, changed and removed over REST: the file is the one truth, and secrets stay in it."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest

from harness import LIMIT, Entry, Gateway, open_gateway, toy
from pegboard.client_configs.import_plan import ImportPlan
from pegboard.config import read_settings
from pegboard.gateway import config_watcher
from pegboard.gateway.rest.openapi import document
from servers.toy import BUILT_IN

pytestmark = pytest.mark.anyio
SECRET = "tulip-tulip-tulip"


@asynccontextmanager
async def rest(tmp_path: Path, servers: dict[str, Entry]) -> AsyncGenerator[tuple[httpx2.AsyncClient, Gateway]]:
    async with (
        open_gateway(tmp_path, servers) as gateway,
        httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
    ):
        yield http, gateway


def entries(gateway: Gateway) -> dict[str, Any]:
    return json.loads(gateway.config.read_text("utf-8"))["mcpServers"]


async def send(http: httpx2.AsyncClient, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    answer = await http.request(method, path, json=body, headers=headers)
    said = answer.json()
    return answer.status_code, said["data"] if said["success"] else said["error"]["message"]


async def test_pasted_text_is_checked_and_nothing_written(tmp_path: Path) -> None:
    """What each server would become, beside those of the config, without its secrets."""
    async with rest(tmp_path, {"mine": toy()}) as (http, gateway):
        before = gateway.config.read_bytes()
        servers = {
            "mine": {"command": "x", "env": {"TOKEN": SECRET}, "trust": True},
            "again": toy(),
            "me": {"url": "http://127.0.0.1:7420/mcp"},
            "self": {"url": gateway.mcp},
            "bad": {"comand": "x"},
        }
        status, data = await send(http, "POST", "/api/servers/check", {"text": json.dumps({"mcpServers": servers})})
        assert status == 200
        outcomes = {row["name"]: row["outcome"] for row in data["servers"]}
        assert outcomes == {"mine_2": "renamed", "again": "same", "me": "skipped", "self": "skipped"}
        assert data["servers"][0]["entry"] == {"command": "x", "env": {"TOKEN": "[redacted]"}}
        assert data["servers"][0]["leftOut"] == [{"key": "trust", "reason": "approval stays with the client"}]
        assert [each["name"] for each in data["unreadable"]] == ["bad"]
        assert SECRET not in json.dumps(data)
        assert gateway.config.read_bytes() == before
        _, named = await send(http, "POST", "/api/servers/check", {"text": "uvx mcp-server-time", "name": "clock"})
        assert [row["name"] for row in named["servers"]] == ["clock"]


async def test_a_long_text_is_read_and_shown_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one paste would keep everybody waiting."""
    threads: list[threading.Thread] = []
    to_dict = ImportPlan.to_dict

    def watched(self: ImportPlan) -> dict[str, Any]:
        threads.append(threading.current_thread())
        return to_dict(self)

    def read(*args: Any, **options: Any) -> Any:
        threads.append(threading.current_thread())
        return read_settings(*args, **options)

    monkeypatch.setattr(ImportPlan, "to_dict", watched)
    monkeypatch.setattr(config_watcher, "read_settings", read)
    async with rest(tmp_path, {}) as (http, _):
        text = json.dumps({"mcpServers": {"a": {"command": "x", "disabled": True}}})
        await send(http, "POST", "/api/servers/check", {"text": text})
        await send(http, "POST", "/api/servers", {"text": text})
    assert len(threads) == 4
    assert threading.current_thread() not in threads


async def test_a_server_is_added_and_taken_over_at_once(tmp_path: Path) -> None:
    """201 for a new one, 200 for the same again, 409 for another of that name, unless it is forced."""
    async with rest(tmp_path, {}) as (http, gateway):
        body = {"name": "one", "entry": toy()}
        status, data = await send(http, "POST", "/api/servers", body)
        assert (status, [row["name"] for row in data["added"]]) == (201, ["one"])
        jsonschema_rs.validate(document()["components"]["schemas"]["Server"], data["added"][0])
        assert entries(gateway) == {"one": toy()}
        assert (await send(http, "POST", "/api/servers/one/refresh"))[1]["registered"] == len(BUILT_IN)
        assert (await send(http, "POST", "/api/servers", body))[0] == 200
        other = {"name": "One", "entry": {"command": "y"}}
        status, message = await send(http, "POST", "/api/servers", other)
        assert (status, "force" in message) == (409, True)
        assert (await send(http, "POST", "/api/servers", {**other, "force": True}))[0] == 200
        assert entries(gateway) == {"one": {"command": "y"}}


async def test_all_servers_of_a_text_are_added(tmp_path: Path) -> None:
    """In one step; those that cannot be read are named."""
    async with rest(tmp_path, {}) as (http, gateway):
        text = (
            '[mcp_servers.a]\ncommand = "x"\n[mcp_servers.b]\nurl = "https://d.example"\n[mcp_servers.c]\nargs = []\n'
        )
        status, data = await send(http, "POST", "/api/servers", {"text": text})
        assert (status, [row["name"] for row in data["added"]]) == (201, ["a", "b"])
        assert [each["name"] for each in data["unreadable"]] == ["c"]
        assert entries(gateway) == {"a": {"command": "x"}, "b": {"url": "https://d.example"}}
        assert set(gateway.board.servers) == {"a", "b"}


async def test_an_entry_is_changed_in_place_and_removed(tmp_path: Path) -> None:
    """Only the keys that were sent; null takes one out."""
    async with rest(tmp_path, {"one": toy({"timeout": 9, "ttl": 8})}) as (http, gateway):
        status, row = await send(http, "PATCH", "/api/servers/one", {"enabled": False, "timeout": 7, "ttl": None})
        assert (status, row["state"]) == (200, "disabled")
        assert entries(gateway)["one"] == {**toy(), "timeout": 7, "enabled": False}
        assert gateway.board.servers["one"].spec.timeout == 7
        assert await send(http, "DELETE", "/api/servers/one") == (200, {"removed": "one"})
        assert (entries(gateway), dict(gateway.board.servers)) == ({}, {})


async def test_a_change_is_for_the_entry_that_was_read(tmp_path: Path) -> None:
    """Two people deny tools at once: whoever is later is told, rather than that the other's change is lost."""
    async with rest(tmp_path, {"one": toy()}) as (http, gateway):
        read = (await send(http, "GET", "/api/servers/one"))[1]["digest"]
        status, row = await send(http, "PATCH", "/api/servers/one", {"tools": {"deny": ["echo"]}, "digest": read})
        assert (status, row["digest"] != read, "digest" in entries(gateway)["one"]) == (200, True, False)
        assert row["digest"] == (await send(http, "GET", "/api/servers/one"))[1]["digest"]
        before = gateway.config.read_bytes()
        for changes in ({"tools": {"deny": ["pid"]}}, {"tools": {"deny": None}}):
            status, said = await send(http, "PATCH", "/api/servers/one", {**changes, "digest": read})
            assert (status, "has changed since you read it" in said) == (409, True)
            assert gateway.config.read_bytes() == before
        undo = {"tools": None, "digest": row["digest"]}
        status, undone = await send(http, "PATCH", "/api/servers/one", undo)
        assert (status, undone["digest"], entries(gateway)["one"]) == (200, read, toy())
        assert (await send(http, "PATCH", "/api/servers/one", {"timeout": 7, "digest": None}))[0] == 200


async def test_a_digest_is_for_admins(tmp_path: Path) -> None:
    """As the entry is, of which it tells."""
    async with rest(tmp_path, {"one": toy()}) as (http, gateway):
        weak = await gateway.token("weak")
        assert "digest" not in (await send(http, "GET", "/api/servers/one", **weak))[1]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("POST", "/api/servers", {}, 400, "name and entry are needed"),
        ("POST", "/api/servers", {"name": " ", "entry": {}}, 400, "name and entry are needed"),
        ("PATCH", "/api/servers/one", {"digest": 7, "timeout": 7}, 400, "digest must be a text"),
        ("PATCH", "/api/servers/one", {"digest": "x"}, 400, "there is nothing to change"),
        ("POST", "/api/servers", {"name": "x", "entry": []}, 400, "name and entry are needed"),
        ("POST", "/api/servers", {"name": "x", "entry": {}}, 400, "needs a command or a url"),
        ("POST", "/api/servers", {"name": "x", "entry": {"comand": "y"}}, 400, "did you mean command"),
        ("POST", "/api/servers", {"name": "x", "entry": {"url": "nowhere"}}, 400, "must be an http:// or https://"),
        ("POST", "/api/servers", {"name": "x", "entry": {"command": "y"}, "force": 1}, 400, "force must be"),
        ("POST", "/api/servers", {"name": "x", "entri": {}}, 400, "'entri' is not a member"),
        ("POST", "/api/servers", {"text": "x", "entry": {}}, 400, "text stands alone"),
        ("POST", "/api/servers", {"text": "{"}, 400, "not JSON"),
        ("POST", "/api/servers", {"text": 5}, 400, "text must be a text"),
        ("POST", "/api/servers/check", {}, 400, "text must be a text"),
        ("POST", "/api/servers/check", {"text": "a" * 262_145}, 400, "more than 262,144 characters"),
        ("POST", "/api/servers", {"text": "a" * 262_145}, 400, "more than 262,144 characters"),
        ("POST", "/api/servers/check", {"text": '{"a": {"command": "x"}, "b": {"url": "y"}}', "name": "n"}, 400, "one"),
        ("PATCH", "/api/servers/one", {}, 400, "nothing to change"),
        ("PATCH", "/api/servers/one", {"timeout": "soon"}, 400, "must be a number of seconds"),
        ("PATCH", "/api/servers/one", {"tiemout": 5}, 400, "did you mean timeout"),
        ("PATCH", "/api/servers/oen", {"timeout": 5}, 404, "did you mean one"),
        ("DELETE", "/api/servers/oen", None, 404, "did you mean one"),
    ],
)
async def test_a_wrong_request_says_what_is_wrong_and_changes_nothing(
    tmp_path: Path, method: str, path: str, body: Any, status: int, said: str
) -> None:
    """With the status that fits."""
    async with rest(tmp_path, {"one": toy()}) as (http, gateway):
        before = gateway.config.read_bytes()
        answered, message = await send(http, method, path, body)
        assert (answered, said in message) == (status, True), message
        assert gateway.config.read_bytes() == before


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/servers", {"name": "x", "entry": {"command": "y"}}),
        ("POST", "/api/servers/check", {"text": "uvx x"}),
        ("PATCH", "/api/servers/one", {"timeout": 5}),
        ("DELETE", "/api/servers/one", None),
    ],
)
async def test_only_admins_change_servers(tmp_path: Path, method: str, path: str, body: Any) -> None:
    """What is written is run here: whoever is not known gets 401, who is no admin 403, wherever they are."""
    async with rest(tmp_path, {"one": toy()}) as (http, gateway):
        before = gateway.config.read_bytes()
        elsewhere, known = {"x-forwarded-for": "203.0.113.9"}, await gateway.token()
        assert (await send(http, method, path, body, **elsewhere))[0] == 401
        assert (await send(http, method, path, body, **elsewhere, **known))[0] == 403
        assert (await send(http, method, path, body, **known))[0] == 403
        assert gateway.config.read_bytes() == before
        admin = await gateway.token("boss", admin=True)
        assert (await send(http, method, path, body, **elsewhere, **admin))[0] in {200, 201}


async def test_a_file_that_cannot_be_used_is_not_changed(tmp_path: Path) -> None:
    """What somebody wrote into it is not lost."""
    async with rest(tmp_path, {"one": toy()}) as (http, gateway):
        gateway.config.write_text("{")
        for method, path, body in (
            ("POST", "/api/servers", {"name": "x", "entry": {"command": "y"}}),
            ("DELETE", "/api/servers/one", None),
        ):
            assert (await send(http, method, path, body))[0] == 400
        assert gateway.config.read_text() == "{"
