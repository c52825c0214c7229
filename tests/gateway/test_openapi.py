"""The REST API as `/docs` shows it: groups, summaries of one line, and bodies that are taken."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest

from harness import LIMIT, open_gateway, toy
from pegboard.gateway.rest.openapi import document
from pegboard.gateway.rest.operations import summarize

pytestmark = pytest.mark.anyio
OPERATIONS = [
    (method, path, described) for path, methods in document()["paths"].items() for method, described in methods.items()
]
BODIES = [each for each in OPERATIONS if "requestBody" in each[2]]
SETTINGS: dict[str, Any] = {"toolsets": ["memory", "tasks"]}


def name(each: object) -> str:
    return each if isinstance(each, str) else ""


def content(described: dict[str, Any]) -> dict[str, Any]:
    return described["requestBody"]["content"]["application/json"]


@pytest.mark.parametrize(("method", "path", "described"), OPERATIONS, ids=name)
def test_a_summary_is_one_line_in_a_group(method: str, path: str, described: dict[str, Any]) -> None:
    """Short, for people, and in one of the groups that the page shows."""
    assert 0 < len(described["summary"]) <= 100
    assert "\n" not in described["summary"]
    # The page shows it as it is.
    assert "`" not in described["summary"]
    assert described["summary"][-1] not in ".;:,"
    for text in (described["summary"], described.get("description", "")):
        assert re.search(r"\b(tool|memory|registry)_[a-z]+\b", text) is None
    [group] = described["tags"]
    assert {"name": group} in document()["tags"]


@pytest.mark.parametrize(("method", "path", "described"), BODIES, ids=name)
def test_an_example_of_a_body_fits_its_schema(method: str, path: str, described: dict[str, Any]) -> None:
    """What the page fills in can be sent."""
    jsonschema_rs.validate(content(described)["schema"], content(described)["example"])


def test_related_addresses_are_one_group() -> None:
    """Memories and the search among them, the gateway and its status."""
    groups = {path: described["tags"][0] for _, path, described in OPERATIONS}
    assert groups["/api/memories"] == groups["/api/memory/search"] == "Memory"
    assert groups["/health"] == groups["/api/status"] == "Gateway"
    assert groups["/api/servers/{name}/log"] == "Servers"


@pytest.mark.parametrize(
    ("text", "summary", "rest"),
    [
        ("Do this.", "Do this", ""),
        ("Do this. And that.", "Do this", "And that."),
        ("Do this; that stays.", "Do this", "that stays."),
        ("Do this. Then memory_search.", "Do this", ""),
        ("Do this.\n\nUse it when.", "Do this", "Use it when."),
        ("a" * 60 + ", " + "b" * 60, "a" * 60, "a" * 60 + ", " + "b" * 60),
    ],
)
def test_a_description_for_models_becomes_one_for_people(text: str, summary: str, rest: str) -> None:
    """Its first sentence, or as much of it as fits; the rest, unless it speaks of tools."""
    assert summarize(text) == (summary, rest)


async def test_examples_are_taken(tmp_path: Path) -> None:
    """One after another, as somebody would who tries the page from the top."""
    change = tmp_path / "openspec" / "changes" / "add-x"
    change.mkdir(parents=True)
    (change / "tasks.md").write_text("- [ ] 1.1 one\n", "utf-8")
    bodies = {(method, path): content(described)["example"] for method, path, described in BODIES}
    key = bodies["post", "/api/memories"]["key"]
    token = f"/api/tokens/{bodies['post', '/api/tokens']['name']}"
    filled = {"{id}": "cursor", "{key}": key, "{name}": "one__echo", "{change}": "add-x", "{number}": "1"}
    async with open_gateway(tmp_path, {"one": toy()}, workspace=str(tmp_path), **SETTINGS) as gateway:
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            for (method, path), body in bodies.items():
                if path.startswith(("/api/servers/{name}/login", "/api/registry/{name}")):
                    # They need a server that one signs in to, and a registry: `tests/login` and `tests/mcp_registry`.
                    continue
                # Of some routes the name is a server's, or a token's.
                target = path.replace("/api/servers/{name}", "/api/servers/one").replace("/api/tokens/{name}", token)
                target = target.replace("/api/changes/{name}", "/api/changes/one")
                for placeholder, value in filled.items():
                    target = target.replace(placeholder, value)
                answer = await http.request(method.upper(), target, json=body)
                assert answer.status_code in {200, 201}, (method, path, answer.text)
