"""A call over REST as a stream: progress while it runs, questions of its server, and its result; going away cancels."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from harness import LIMIT, eventually, every_server, open_gateway

pytestmark = pytest.mark.anyio
STREAM = {"accept": "text/event-stream"}
KINDS = ("stdio_handshake", "http_handshake", "http_modern")


async def call(http: httpx2.AsyncClient, tool: str, **body: Any) -> list[tuple[str, dict[str, Any]]]:
    """Every event of a call."""
    told: list[tuple[str, dict[str, Any]]] = []
    kind = ""
    async with http.stream("POST", f"/api/tools/{tool}/call", json=body, headers=STREAM) as response:
        assert response.headers["content-type"].startswith(STREAM["accept"])
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            kind = value if name == "event" else kind
            if name == "data":
                told.append((kind, json.loads(value)))
    return told


def text_of(result: Mapping[str, Any]) -> str:
    return result["data"]["content"][0]["text"]


@pytest.mark.parametrize("kind", KINDS)
async def test_progress_comes_before_the_result(tmp_path: Path, kind: str) -> None:
    """Each as the server said it."""
    with every_server([kind]) as servers:
        async with (
            open_gateway(tmp_path, servers) as gateway,
            httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
        ):
            *progress, (last, result) = await call(http, f"{kind}__progress", arguments={"steps": 3})
    assert {name for name, _ in progress} == {"progress"}
    assert [data["progress"] for _, data in progress] == sorted(data["progress"] for _, data in progress)
    assert (last, result["success"]) == ("result", True)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_question_is_answered_with_the_next_round(tmp_path: Path, kind: str) -> None:
    """What is asked comes with a state; both go back with the answers, whichever era the server is of. The audit tells
    a round that asked from the one that ended the call."""
    with every_server([kind], features=["tools", "asking"]) as servers:
        async with (
            open_gateway(tmp_path, servers, audit={}) as gateway,
            httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
        ):
            arguments = {"who": "Ada"}
            ((asked, first),) = await call(http, f"{kind}__ask_form", arguments=arguments)
            ((key, question),) = first["data"]["inputRequests"].items()
            answer = {"action": "accept", "content": {"name": "Grace"}}
            round_two = {"inputResponses": {key: answer}, "requestState": first["data"]["requestState"]}
            ((last, result),) = await call(http, f"{kind}__ask_form", arguments=arguments, **round_two)
            records = (await http.get("/api/calls?kind=call")).json()["data"]["records"]
            total = (await http.get("/api/stats")).json()["data"]["total"]
    assert [record["outcome"] for record in records] == ["ok", "input_required"]
    assert total["errors"] == 0
    assert (asked, question["method"]) == ("input", "elicitation/create")
    assert "Ada" in question["params"]["message"]
    assert (last, "Grace" in text_of(result)) == ("result", True)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_question_may_lead_to_a_page(tmp_path: Path, kind: str) -> None:
    """Its address is told, and that somebody has been there goes back."""
    with every_server([kind], features=["tools", "asking"]) as servers:
        async with (
            open_gateway(tmp_path, servers) as gateway,
            httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
        ):
            ((asked, first),) = await call(http, f"{kind}__ask_url", arguments={"who": "Ada"})
            ((key, question),) = first["data"]["inputRequests"].items()
            round_two = {"inputResponses": {key: {"action": "accept"}}, "requestState": first["data"]["requestState"]}
            ((last, result),) = await call(http, f"{kind}__ask_url", arguments={"who": "Ada"}, **round_two)
    assert (asked, question["params"]["url"]) == ("input", "https://example.com/pay?q=ü")
    assert (last, "accept" in text_of(result)) == ("result", True)


async def test_what_goes_wrong_is_the_result(tmp_path: Path) -> None:
    """In the one shape of errors; what is wrong with the request itself has a status."""
    with every_server(["stdio_handshake"]) as servers:
        async with (
            open_gateway(tmp_path, servers) as gateway,
            httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
        ):
            ((kind, unknown),) = await call(http, "stdio_handshake__no_such")
            bad = await http.post("/api/tools/x/call", json={"arguments": []}, headers=STREAM)
            odd = await http.post("/api/tools/x/call", json={"requestState": "x"})
    assert (kind, unknown["success"], unknown["error"]["code"]) == ("result", False, "TOOL_NOT_FOUND")
    assert (bad.status_code, odd.status_code) == (400, 400)


@pytest.mark.parametrize("kind", KINDS)
async def test_progress_is_numbers_and_a_text(tmp_path: Path, kind: str) -> None:
    """Whatever else a server says instead is not told: whoever shows it counts on that."""
    also = [
        {"progress": {"a": 1}, "total": [1]},
        {"progress": "4"},
        {"progress": True},
        {"message": "four"},
        {"progress": 4, "total": [1], "message": {"a": 1}},
        {"progress": 5.5, "total": 6, "message": "five"},
    ]
    with every_server([kind]) as servers:
        async with (
            open_gateway(tmp_path, servers) as gateway,
            httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
        ):
            *progress, _ = await call(http, f"{kind}__progress", arguments={"steps": 0, "also": also})
    assert [data for _, data in progress] == [{"progress": 4}, {"progress": 5.5, "total": 6, "message": "five"}]


@pytest.mark.parametrize("odd", [None, {}, [], "x", {"q": None}, {"q": {}}, {"q": {"method": 1}}])
async def test_questions_that_are_none_are_a_failure(tmp_path: Path, odd: Any) -> None:
    """Nobody could answer them."""
    with every_server(["http_modern"], features=["tools", "asking"]) as servers:
        async with (
            open_gateway(tmp_path, servers) as gateway,
            httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
        ):
            ((kind, said),) = await call(http, "http_modern__ask_form", arguments={"odd": odd})
    assert (kind, said["success"], said["error"]["code"]) == ("result", False, "TOOL_EXECUTION_FAILED")
    assert "sent an answer that cannot be used" in said["error"]["message"]


async def test_whoever_goes_away_cancels_the_call(tmp_path: Path) -> None:
    """Its server is told, and the call is over."""
    with every_server(["http_handshake"]) as servers:
        async with (
            open_gateway(tmp_path, servers, audit={}) as gateway,
            httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
        ):
            body = {"arguments": {"seconds": LIMIT}}
            path = "/api/tools/http_handshake__sleep/call"
            async with http.stream("POST", path, json=body, headers=STREAM) as response:
                await anext(response.aiter_lines())

            async def records() -> list[dict[str, Any]]:
                return (await http.get("/api/calls?kind=call")).json()["data"]["records"]

            async with asyncio.timeout(LIMIT):
                while not (found := await records()):
                    await asyncio.sleep(0.05)
            await eventually(lambda: gateway.board.relay.parked.count == 0)
    assert [record["outcome"] for record in found] == ["cancelled"]
