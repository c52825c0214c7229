"""A token that may only read changes nothing, whatever is sent with it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from forking import warm_start
from harness import LIMIT, serving, toy, write_config
from pegboard.gateway.rest.openapi import document

SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
CHANGING = {"PUT", "POST", "PATCH", "DELETE"}
schema = schemathesis.openapi.from_dict(document())


@dataclass(frozen=True)
class Shared:
    """A gateway, the header of its weak token, and its config."""

    url: str
    headers: dict[str, str]
    config: Path

    def state(self) -> dict[str, Any]:
        """All that could be changed, as the user of the machine sees it."""
        with httpx2.Client(base_url=self.url, timeout=LIMIT) as http:
            paths = ("/api/servers", "/api/memories", "/api/tokens")
            found: dict[str, Any] = {path: http.get(path).json()["data"] for path in paths}
        for row in found["/api/servers"]["servers"]:
            # To ask a server for its tools is no change.
            for key in ("state", "lastSeen", "latencyMs", "era", "protocolVersion", "seen", "tools"):
                row.pop(key, None)
        for row in found["/api/tokens"]["tokens"]:
            row.pop("lastUsedAt")
        # What time and reading do to a memory's score is no change either.
        found["/api/memories"] = [(row["key"], row["updated_at"]) for row in found["/api/memories"]["memories"]]
        return {**found, "config": self.config.read_text("utf-8")}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[Shared]:
    """A gateway in a process of its own, with a server, a memory and a token that only reads."""
    folder: Path = tmp_path_factory.mktemp("weak_token")
    config = write_config(folder / "pegboard.json", {"one": toy(tools=["x"])}, toolsets=["discovery", "memory"])
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "PEGBOARD_STATE_DIR": str(folder / "state")}
    add = [*warm_start(), "token", "add", "weak", "--read-only", "--config", str(config)]
    token = subprocess.run(add, env={**os.environ, **home}, capture_output=True, text=True, check=True).stdout.strip()
    home["PATH"] = str(folder / "nothing")
    with serving(config, 0, **home) as (_, url):
        with httpx2.Client(base_url=url.removesuffix("/mcp"), timeout=LIMIT) as http:
            assert http.post("/api/memories", json={"key": "kept", "text": "stays"}).status_code == 201
        found = Shared(url.removesuffix("/mcp"), {"authorization": f"Bearer {token}"}, config)
        before = json.dumps(found.state())
        yield found
        assert json.dumps(found.state()) == before


@schema.include(path_regex="^/api", method_regex="POST|PATCH|PUT|DELETE").parametrize()  # pyright: ignore[reportUntypedFunctionDecorator]
@settings(max_examples=25, deadline=None, suppress_health_check=SLOW_IS_FINE, derandomize=True)
def test_whatever_it_sends_changes_nothing(case: Any, shared: Shared) -> None:
    """Right and wrong requests alike; what is there before is there afterwards, as the fixture sees."""
    answer = case.call(base_url=shared.url, headers=shared.headers)
    assert answer.status_code < 500 or answer.status_code == 501, answer.text
    assert answer.status_code != 201


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
