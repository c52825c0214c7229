"""The registry over REST: the same answers that the commands give."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest

from harness import LIMIT, open_gateway
from mcp_registry.fixture_registry import registry_of
from mcp_registry.records import ALL
from pegboard.gateway.rest import registry_routes
from pegboard.mcp_registry.registry import FoundServer
from pegboard.mcp_registry.rows import detail_row

pytestmark = pytest.mark.anyio
NAME = "io.github.alice%2Fweather-mcp"


@pytest.fixture(autouse=True)
def no_registry_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The config names one."""
    monkeypatch.delenv("PEGBOARD_REGISTRY")


async def test_search_in_pages(tmp_path: Path) -> None:
    """The address of the registry is the config's; a cursor goes on."""
    with registry_of(ALL) as registry:
        async with open_gateway(tmp_path, {}, registry=registry.url) as gateway:
            async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
                data = (await http.get("/api/registry", params={"q": "weather", "limit": 2})).json()["data"]
                assert [row["name"] for row in data["servers"]] == [
                    "io.github.alice/weather-mcp",
                    "io.github.mallory/harmless",
                ]
                assert (data["total"], data["nextCursor"], data["complete"]) == (3, "2", True)
                first = data["servers"][0]
                assert (first["publisher"], first["version"]) == ("io.github.alice", "1.2.0")
                assert first["runs"][0]["command"].startswith("npx -y @alice/weather-mcp@1.2.0 ")
                rest = (await http.get("/api/registry", params={"q": "weather", "limit": 2, "cursor": "2"})).json()[
                    "data"
                ]
                assert [row["status"] for row in rest["servers"]] == ["deprecated"]
                assert rest["nextCursor"] is None


async def test_a_server_with_the_entry_it_would_become(tmp_path: Path) -> None:
    """Nothing is changed; every way is there, with what it wants or why it cannot be taken."""
    with registry_of(ALL) as registry:
        async with open_gateway(tmp_path, {}, registry=registry.url) as gateway:
            async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
                data = (await http.get(f"/api/registry/{NAME}")).json()["data"]
                (choice,) = data["choices"]
                assert data["serverName"] == "weather_mcp"
                assert choice["entry"]["env"] == {"WEATHER_KEY": "${WEATHER_KEY}"}
                assert choice["variables"] == ["PEGBOARD_INPUT_WEATHER_MCP__PLACE", "WEATHER_KEY"]
                inputs = {each["key"]: each for each in choice["inputs"]}
                assert (inputs["WEATHER_KEY"]["secret"], inputs["units"]["choices"]) == (True, ["metric", "imperial"])
                bundle = (await http.get("/api/registry/io.github.frank%2Fbundle")).json()["data"]
                assert "cannot run" in bundle["choices"][0]["problem"]
                versions = await http.get(f"/api/registry/{NAME}", params={"version": "9.9.9"})
                assert versions.status_code == 404
        assert gateway.config.read_text().count("weather") == 0


async def test_an_entry_is_made_with_answers(tmp_path: Path) -> None:
    """What was answered stands at its place; secrets stay variables; what does not fit is refused in words."""
    answers = {"units": "imperial", "place": "Lisbon", "WEATHER_CACHE": "/tmp/w", "WEATHER_KEY": "tulip"}
    with registry_of(ALL) as registry:
        async with open_gateway(tmp_path, {}, registry=registry.url) as gateway:
            async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
                made = (await http.post(f"/api/registry/{NAME}", json={"answers": answers})).json()["data"]
                assert made["entry"]["args"][-4:] == ["--units", "imperial", "Lisbon", "--stdio"]
                assert made["entry"]["env"] == {"WEATHER_KEY": "${WEATHER_KEY}", "WEATHER_CACHE": "/tmp/w"}
                assert made["variables"] == ["WEATHER_KEY"]
                assert "imperial Lisbon" in made["command"]
                wrong: list[tuple[dict[str, Any], str]] = [
                    ({"answers": {"units": "feet"}}, "units must be one of metric, imperial"),
                    ({"answers": {"unit": "metric"}}, "did you mean units?"),
                    ({"answers": {"units": 1}}, "answers must be an object of texts"),
                    ({"answers": []}, "answers must be an object of texts"),
                    ({"use": 7}, "use must be a whole number from 1 to 1"),
                    ({"use": "1"}, "use must be a whole number"),
                    ({"use": True}, "use must be a whole number"),
                ]
                for body, words in wrong:
                    answer = await http.post(f"/api/registry/{NAME}", json=body)
                    assert answer.status_code == 400, body
                    assert words in answer.json()["error"]["message"]
                bundle = await http.post("/api/registry/io.github.frank%2Fbundle", json={})
                assert "cannot run" in bundle.json()["error"]["message"]


async def test_a_server_is_worked_out_beside_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a record takes, everybody else is answered meanwhile."""
    threads: list[threading.Thread] = []

    def note_thread(found: FoundServer) -> dict[str, Any]:
        threads.append(threading.current_thread())
        return detail_row(found)

    monkeypatch.setattr(registry_routes, "detail_row", note_thread)
    with registry_of(ALL) as registry:
        async with open_gateway(tmp_path, {}, registry=registry.url) as gateway:
            async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
                assert (await http.get(f"/api/registry/{NAME}")).status_code == 200
    # The gateway's loop is this one.
    assert [each is threading.current_thread() for each in threads] == [False]


WRONG: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("/api/registry", {}, 400),
    ("/api/registry", {"q": " "}, 400),
    ("/api/registry", {"q": "x", "limit": "0"}, 400),
    ("/api/registry", {"q": "x", "limit": "101"}, 400),
    ("/api/registry", {"q": "x", "cursor": "-1"}, 400),
    ("/api/registry", {"q": "x" * 1001}, 400),
    ("/api/registry", {"q": "x", "lmit": "5"}, 400),
    ("/api/registry/nobody%2Fnothing", {}, 404),
    (f"/api/registry/{NAME}", {"q": "x"}, 400),
)


async def test_what_is_wrong_is_refused_with_the_fitting_status(tmp_path: Path) -> None:
    """A misspelt parameter is one of them."""
    with registry_of(ALL) as registry:
        async with open_gateway(tmp_path, {}, registry=registry.url) as gateway:
            async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
                for path, query, status in WRONG:
                    answer = await http.get(path, params=query)
                    assert (answer.status_code, answer.json()["success"]) == (status, False), (path, query)


async def test_a_registry_that_is_not_there_is_503(tmp_path: Path) -> None:
    """Nothing is kept that could answer."""
    async with open_gateway(tmp_path, {}, registry="http://127.0.0.1:9") as gateway:
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            assert (await http.get("/api/registry", params={"q": "x"})).status_code == 503
