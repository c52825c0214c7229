"""One implementation behind MCP, REST and Python: the same operations get the same answers."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from harness import LIMIT, Gateway, http_client, open_gateway
from pegboard.toolsets.memory.toolset import MemoryToolset

pytestmark = pytest.mark.anyio

Operation = tuple[str, dict[str, Any]]
Interface = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
KEYS = ("a", "b:c", "shop:pay/now", "100%_sure", "日本", "a b", "x?y#z", "...", "rename", "k/linked")
WORDS = ("stripe", "invoice", "refund", "数据库", "timeout", "retry", "charge", "the")
OWN: dict[str, Any] = {"toolsets": ["memory"]}


def operations(seed: int, number: int) -> list[Operation]:
    """Some of everything, wrong calls among them."""
    chance = random.Random(seed)

    def text() -> str:
        return " ".join(chance.choices(WORDS, k=chance.randrange(1, 7)))

    def links() -> list[dict[str, Any]]:
        return [
            {"key": chance.choice(KEYS), "type": chance.choice(("bug", "design")), "weight": chance.choice((0, 0.3, 1))}
            for _ in range(chance.randrange(3))
        ]

    def one() -> Operation:
        key = chance.choice(KEYS)
        space = chance.choice(({}, {}, {"namespace": "other"}))
        sorting = chance.choice(({}, {"sortLinks": "false"}, {"sortLinks": "maybe"}))
        page = chance.choice(({}, {"limit": 2}, {"limit": 2, "offset": 1}, {"limit": 0}, {"offset": -1}))
        match chance.randrange(9):
            case 0 | 1:
                replace = chance.choice(({}, {"replace": True}))
                return "memory_add", {
                    "key": key,
                    "summary": text(),
                    "text": text(),
                    "links": links(),
                    **replace,
                    **space,
                }
            case 2:
                version = chance.choice(({}, {"version": 1}, {"version": 2}))
                return "memory_update", {"key": key, "text": text(), **version, **space}
            case 3:
                return "memory_rename", {"old_key": key, "new_key": chance.choice(KEYS), **space}
            case 4:
                return "memory_delete", {"key": key, **space}
            case 5:
                return "memory_get", {"key": key, **sorting, **space}
            case 6:
                return "memory_search", {"query": text(), **page, **sorting, **space}
            case 7:
                operator = chance.choice(({}, {"operator": "AND"}, {"operator": "NOT"}))
                return "memory_fulltext_search", {"keywords": text(), **operator, **page, **sorting, **space}
            case _:
                walk = chance.choice(({}, {"depth": 1}, {"depth": 9}, {"total": 2}))
                return chance.choice(
                    (("memory_read_linked", {"key": key, **walk, **space}), ("memory_list", {**page, **space}))
                )

    return [one() for _ in range(number)]


def over_rest(http: httpx2.AsyncClient) -> Interface:
    """Each operation as the request that stands for it."""

    async def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        given = dict(arguments)
        named = tool in {"memory_get", "memory_update", "memory_delete", "memory_read_linked"}
        key = quote(given.pop("key"), safe="") if named else ""
        match tool:
            case "memory_add":
                answer = await http.post("/api/memories", json=given)
            case "memory_list":
                answer = await http.get("/api/memories", params=given)
            case "memory_get":
                answer = await http.get(f"/api/memories/{key}", params=given)
            case "memory_update":
                answer = await http.patch(f"/api/memories/{key}", json=given)
            case "memory_delete":
                answer = await http.delete(f"/api/memories/{key}", params=given)
            case "memory_rename":
                old = quote(given.pop("old_key"), safe="")
                answer = await http.post(f"/api/memories/{old}/rename", json=given)
            case "memory_read_linked":
                answer = await http.get(f"/api/memories/{key}/linked", params=given)
            case "memory_search":
                answer = await http.get("/api/memory/search", params={"q": given.pop("query"), **given})
            case _:
                answer = await http.get("/api/memory/fulltext", params=given)
        body: dict[str, Any] = answer.json()
        assert body["success"] is (answer.status_code in {200, 201}), (answer.status_code, body)
        return body

    return call


@pytest.mark.scenario("memory: Tool compatibility")
@pytest.mark.parametrize("seed", range(4))
async def test_random_operations_get_equal_answers(tmp_path: Path, seed: int) -> None:
    """Over MCP in both eras, over REST and in Python, each on a board of its own with the same clock."""
    async with AsyncExitStack() as stack:
        now = [1_800_000_000.0]

        async def gateway(name: str) -> Gateway:
            folder = tmp_path / name
            folder.mkdir()
            opened = await stack.enter_async_context(
                open_gateway(folder, {}, **OWN, storage=f"sqlite:{folder / 'own.db'}")
            )
            opened.board.toolsets.of(MemoryToolset).memories._clock = lambda: now[0]
            return opened

        interfaces: dict[str, Interface] = {}
        for version in ("2025-11-25", "2026-07-28"):
            client = await stack.enter_async_context(http_client((await gateway(version)).mcp, version))

            async def over_mcp(tool: str, arguments: dict[str, Any], client: Any = client) -> dict[str, Any]:
                return (await client.call(tool, arguments))["structuredContent"]

            interfaces[version] = over_mcp
        url = (await gateway("rest")).url
        interfaces["rest"] = over_rest(await stack.enter_async_context(httpx2.AsyncClient(base_url=url, timeout=LIMIT)))
        board = (await gateway("python")).board

        async def in_python(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
            return (await board.call(tool, arguments)).unwrap()["structuredContent"]

        interfaces["python"] = in_python
        for tool, arguments in operations(seed, 120):
            now[0] += 61.5
            answers = {name: await call(tool, arguments) for name, call in interfaces.items()}
            first = answers["python"]
            assert all(answer == first for answer in answers.values()), (tool, arguments, answers)
