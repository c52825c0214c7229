"""A token that may only read changes nothing, whatever is sent with it."""

from __future__ import annotations

import contextlib
import itertools
import os
import sqlite3
import subprocess
from collections.abc import Generator
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from typing import Any

import httpx2
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings

from forking import warm_start
from harness import LIMIT, serving, toy, write_config
from pegboard.gateway.rest.openapi import document
from tasks.project import whole

SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
# What is kept, but for what reading does to it.
KEPT = (
    "SELECT key, summary, text, version, updated_at FROM memories ORDER BY key",
    "SELECT source, target, type FROM memory_links ORDER BY id",
    "SELECT * FROM tasks ORDER BY id",
    "SELECT root, version FROM task_registries ORDER BY id",
    "SELECT * FROM board_tools ORDER BY 1, 2",
    "SELECT id, name, digest, rule, expires_at FROM tokens ORDER BY id",
)
# What is there under each name of a path: names by chance fit nothing.
REAL = {
    "/api/servers": {"name": ["one"]},
    "/api/tokens": {"name": ["weak"]},
    "/api/memories": {"key": ["kept"]},
    "/api/clients": {"id": ["cursor", "vscode"]},
    "/api/tasks": {"change": ["add-login"], "number": ["2"]},
    "/api/tools": {"name": ["one__x", "memory_add", "memory_delete", "tool_load", "tool_call", "task_update"]},
}
TURNS = itertools.count()
schema = schemathesis.openapi.from_dict(document())


@dataclass(frozen=True)
class Shared:
    """A gateway, the header of its weak token, and its config."""

    url: str
    headers: dict[str, str]
    folder: Path
    # One for all requests: each would open a connection, and read the proxies of the machine, anew.
    session: requests.Session

    def state(self) -> dict[str, Any]:
        """All that could be changed, as the user of the machine sees it."""
        with httpx2.Client(base_url=self.url, timeout=LIMIT) as http:
            paths = ("/api/servers", "/api/tokens")
            found: dict[str, Any] = {path: http.get(path).json()["data"] for path in paths}
        for row in found["/api/servers"]["servers"]:
            # To ask a server for its tools is no change.
            for key in ("state", "lastSeen", "latencyMs", "era", "protocolVersion", "seen", "tools"):
                row.pop(key, None)
        for row in found["/api/tokens"]["tokens"]:
            row.pop("lastUsedAt")
        with contextlib.closing(sqlite3.connect(self.folder / "state" / "pegboard.db")) as database:
            for query in KEPT:
                found[query] = database.execute(query).fetchall()
        # Configs of clients, backups, tasks: everything that is not the gateway's own state.
        files = [path for path in sorted(self.folder.rglob("*")) if path.is_file() and "state" not in path.parts]
        return {**found, "files": {str(path): path.read_bytes().hex() for path in files}}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[Shared]:
    """A gateway in a process of its own, with a server, a memory, tasks and a token that only reads."""
    folder: Path = tmp_path_factory.mktemp("weak_token")
    toolsets = ["discovery", "memory", "chats", "tasks"]
    own: dict[str, Any] = {"toolsets": toolsets, "workspace": str(whole(folder / "project"))}
    config = write_config(folder / "pegboard.json", {"one": toy(tools=["x"])}, **own)
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "PEGBOARD_STATE_DIR": str(folder / "state")}
    add = [*warm_start(), "token", "add", "weak", "--read-only", "--config", str(config)]
    token = subprocess.run(add, env={**os.environ, **home}, capture_output=True, text=True, check=True).stdout.strip()
    home["PATH"] = str(folder / "nothing")
    with serving(config, 0, **home) as (_, url):
        with httpx2.Client(base_url=url.removesuffix("/mcp"), timeout=LIMIT) as http:
            assert http.post("/api/memories", json={"key": "kept", "text": "stays"}).status_code == 201
            assert http.post("/api/tasks/sync").json()["data"]["added"] == 2
        with requests.Session() as session:
            session.trust_env = False
            session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
            found = Shared(url.removesuffix("/mcp"), {"authorization": f"Bearer {token}"}, folder, session)
            before = found.state()
            yield found
            assert found.state() == before


@schema.parametrize()  # pyright: ignore[reportUntypedFunctionDecorator]
@settings(max_examples=15, deadline=None, suppress_health_check=SLOW_IS_FINE, derandomize=True)
def test_whatever_it_sends_changes_nothing(case: Any, shared: Shared) -> None:
    """Right and wrong requests alike, about what is there and what is not; what was there before is there afterwards,
    as the fixture sees."""
    for names in ({}, real_names(case.operation.path)):
        case.path_parameters = {**(case.path_parameters or {}), **names}
        answer = case.call(base_url=shared.url, headers=shared.headers, session=shared.session)
        assert answer.status_code < 500 or answer.status_code in {501, 502, 503}, answer.text
        assert answer.status_code != 201


def real_names(path: str) -> dict[str, str]:
    """What the names of a path may be so that it leads to something; another time, another."""
    named = next((names for begin, names in REAL.items() if path.startswith(f"{begin}/{{")), {})
    return {name: values[next(TURNS) % len(values)] for name, values in named.items()}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/memories", {"key": "new", "text": "x"}),
        ("PATCH", "/api/memories/kept", {"text": "x"}),
        ("DELETE", "/api/memories/kept", None),
        ("POST", "/api/memories/kept/rename", {"new_key": "gone"}),
        ("POST", "/api/tools/memory_add/call", {"arguments": {"key": "new"}}),
        ("POST", "/api/tools/one__x/call", {}),
        ("POST", "/api/servers/one/disable", None),
        ("DELETE", "/api/servers/one", None),
        ("POST", "/api/tokens", {"name": "own"}),
        ("DELETE", "/api/tokens/weak", None),
    ],
)
def test_each_change_is_refused(shared: Shared, method: str, path: str, body: Any) -> None:
    """As what is switched off, or as what is not there, or as what is for admins."""
    with httpx2.Client(base_url=shared.url, headers=shared.headers, timeout=LIMIT) as http:
        answer = http.request(method, path, json=body)
    assert answer.status_code in {403, 404}, answer.text
    assert answer.json()["success"] is False
