"""Reading the audit: by REST and by command; everybody sees their own records, and an admin all of them."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.testing import CliRunner

from audit.readers import add_tokens, token_client
from harness import LIMIT, http_client, open_gateway, serving, toy, write_config
from pegboard.access.rule import Rule
from pegboard.audit import query
from pegboard.audit.record import KINDS
from pegboard.cli.app import app
from pegboard.cli.audit import RecordOrder, _show_line, _show_table  # pyright: ignore[reportPrivateUsage]
from pegboard.result import ToolFailure

pytestmark = pytest.mark.anyio


WRONG = [
    ("limit", "0", "limit must be a whole number from 1 to 1000"),
    ("limit", "-1", "limit must be a whole number from 1 to 1000"),
    ("since", "yesterdayish", "since must be like 30m, 2h, 7d"),
    ("until", "2026-13-01", "until must be like"),
    ("cursor", "x", "cursor is none that an answer gave"),
    ("denied", "maybe", "denied must be true or false"),
    ("whom", "red", "did you mean who?"),
    ("outcome", "tool_eror", "found 'tool_eror', did you mean tool_error?"),
    ("outcome", "refused:foo", "refused:WHY must have one of rule, unknown_tool,"),
    ("kind", "foo", "kind must be one of call, read, prompt,"),
    ("kind", "tokens.*", "or a pattern such as token.*"),
    ("kind", "c?ll", "kind must be one of"),
    ("since", "999999999w", "since must be between the years 1970 and 9999"),
    ("since", "0001-01-01T00:00+23:59", "since must be between the years 1970 and 9999"),
    ("until", "9999-12-31T23:59-23:59", "until must be between the years 1970 and 9999"),
    ("who", "a" * 201, "who has more than 200 characters"),
    ("server", "*a" * 101, "server has more than 200 characters"),
    ("tool", "*a" * 101, "tool has more than 200 characters"),
]


def test_the_kinds_that_can_be_asked_for_are_those_that_are_recorded() -> None:
    """And those that the documentation names."""
    root = Path(__file__).parents[2]
    table = (
        (root / "docs" / "audit.md").read_text("utf-8").partition("## What is recorded")[2].partition("Of refusals")[0]
    )
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert {kind for row in rows for kind in re.findall("`([^`]+)`", row)} == set(KINDS) - {"audit.away"}
    noted = re.compile(r"""note\w*\((?:rest, request, )?\s*"([a-z]+(?:\.[a-z]+)?)\"""")
    source = "".join(path.read_text("utf-8") for path in (root / "src" / "pegboard").rglob("*.py"))
    assert set(noted.findall(source)) <= set(KINDS)
    assert len(noted.findall(source)) > 10


@pytest.mark.parametrize(
    "words", [("--outcome", "foo"), ("--kind", "foo"), ("--since", "yesterdayish"), ("--limit", "-1")]
)
async def test_a_filter_that_fits_nothing_is_the_callers_mistake(tmp_path: Path, words: tuple[str, str]) -> None:
    """Exit code 2, and what would be right."""
    config = write_config(tmp_path / "pegboard.json", {})
    said = await run("audit", *words, config=config, code=2)
    assert "must be" in said or "greater than or equal to 1" in said


@pytest.mark.parametrize("pattern", ["*a" * 15_000, "?a" * 15_000, "a" * 30_000, f"call{'*' * 61}"])
def test_a_pattern_that_is_longer_than_any_kind_is_not_even_read(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To read it takes a while in which nobody else is served; and it is not said back."""
    monkeypatch.setattr(query, "fnmatchcase", lambda *_: pytest.fail("it was read"))
    with pytest.raises(ToolFailure) as refused:
        query.read_kind(pattern)
    assert len(str(refused.value)) < 1000


@pytest.mark.scenario("audit: Everybody reads their own records alone")
async def test_a_principal_sees_its_own_records_and_nobody_elses(tmp_path: Path) -> None:
    """Whatever it filters by; and not whether a tool that is hidden from it is there."""
    async with open_gateway(tmp_path, {"one": toy(), "two": toy()}, audit={}) as gateway:
        rules = {"red": Rule(servers=("one",)), "blue": Rule(), "boss": Rule(admin=True)}
        tokens = add_tokens(gateway, **rules)
        for name in ("red", "blue"):
            async with token_client(gateway, tokens[name]) as client:
                await client.until_in("tools", "one__echo")
                await client.request("tools/call", {"name": "one__echo", "arguments": {"by": name}})
                for tool in ("two__echo", "two__none") if name == "red" else ():
                    with pytest.raises(Exception, match="Unknown tool"):
                        await client.request("tools/call", {"name": tool})

        async def read(name: str, /, **query: Any) -> list[Any]:
            headers = {"authorization": f"Bearer {tokens[name]}"}
            async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT, headers=headers) as http:
                answer = await http.get("/api/calls", params={"kind": "call", **query})
                return answer.raise_for_status().json()["data"]["records"]

        assert {row["principal"]["name"] for row in await read("red")} == {"red"}
        assert await read("red", who="blue") == []
        assert len(await read("boss", who="blue")) == 1
        assert {row["principal"]["name"] for row in await read("boss")} == {"red", "blue"}
        hidden = [(row["tool"], row["outcome"]) for row in await read("red", denied="true")]
        assert hidden == [("two__none", "refused:unknown_tool"), ("two__echo", "refused:unknown_tool")]
        assert await read("red", outcome="refused:rule") == []
        assert len(await read("red", outcome="refused:unknown_tool")) == 2
        assert [row["outcome"] for row in await read("boss", outcome="refused:rule")] == ["refused:rule"]
        for path in ("/api/audit/head", "/api/audit/verify"):
            async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
                for who, status in (("red", 403), ("boss", 200)):
                    answer = await http.get(path, headers={"authorization": f"Bearer {tokens[who]}"})
                    assert answer.status_code == status


async def test_records_come_in_pages(tmp_path: Path) -> None:
    """Newest first, each once, until there is no cursor; what is asked for wrongly is said."""
    async with open_gateway(tmp_path, {"one": toy()}, audit={}) as gateway, http_client(gateway.mcp) as client:
        await client.until_in("tools", "one__echo")
        for at in range(25):
            await client.request("tools/call", {"name": "one__echo", "arguments": {"at": at}})
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            ids: list[str] = []
            cursor: dict[str, str] = {}
            for _ in range(3):
                query = {"kind": "call", "limit": "10", "since": "1h", **cursor}
                data = (await http.get("/api/calls", params=query)).json()["data"]
                ids += [row["id"] for row in data["records"]]
                cursor = {"cursor": data["nextCursor"]} if "nextCursor" in data else {}
            assert cursor == {}
            assert ids == sorted(set(ids), reverse=True)
            assert len(ids) == 25
            for name, value, message in WRONG:
                answer = await http.get("/api/calls", params={name: value})
                assert (answer.status_code, message in answer.json()["error"]["message"]) == (400, True), answer.text
            for name, value in (("kind", "TOKEN.*"), ("outcome", "refused"), ("outcome", "refused:rule")):
                assert (await http.get("/api/calls", params={name: value})).status_code == 200


async def test_the_command_shows_verifies_and_finds_an_edit(tmp_path: Path) -> None:
    """With a running gateway and without one; exit code 1 names the first record that was changed."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy()})
    with serving(config) as (_, url):
        async with http_client(url) as client:
            await client.until_in("tools", "one__echo")
            await client.request("tools/call", {"name": "one__echo", "arguments": {"text": "quokka"}})
        shown = await run("audit", "--kind", "call", config=config)
        assert shown.splitlines()[1].split()[2:5] == ["local", "one__echo", "ok"]
        assert max(map(len, shown.splitlines())) <= 80
    printed = await run("audit", "--tool", "one__*", "--since", "1h", "--json", config=config)
    (row,) = json.loads(printed)["data"]["records"]
    assert row["outcome"] == "ok"
    assert "none was changed" in await run("audit", "verify", config=config)
    head = (await run("audit", "head", config=config)).split()[0]
    assert "none was changed" in await run("audit", "verify", "--head", head, config=config)
    with sqlite3.connect(tmp_path / "state" / "pegboard.db") as other:
        other.execute("UPDATE audit SET principal = 'somebody' WHERE id = ?", (row["id"],))
    found = await run("audit", "verify", config=config, code=1)
    assert row["id"] in found
    assert "was changed" in found
    assert "Nothing was recorded" in await run("audit", "--denied", config=config)


async def test_following_goes_on_with_what_comes(tmp_path: Path) -> None:
    """Each record is a line, once, as soon as it is kept."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy()})
    with serving(config) as (_, url):
        command = [sys.executable, "-m", "pegboard", "audit", "--follow", "--kind", "call", "--json", "-c", str(config)]
        follower = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert follower.stdout is not None
        try:
            async with http_client(url) as client:
                await client.until_in("tools", "one__echo")
                traces: list[str] = []
                for at in range(3):
                    await client.request("tools/call", {"name": "one__echo", "arguments": {"at": at}})
                    traces.append(json.loads(follower.stdout.readline())["id"])
            assert traces == sorted(set(traces))
        finally:
            follower.terminate()
            follower.wait(20)
            follower.stdout.close()


def test_records_of_several_processes_come_in_the_order_of_time() -> None:
    """One that is kept a moment later than a newer one of another process is shown before it, and none twice."""
    order = RecordOrder()

    def take(now: float, *names: str) -> list[str]:
        return [record["id"] for record in order.take([{"id": name} for name in names], now)]

    assert take(0.0, "03", "01") == ["01", "03"]
    assert take(0.5, "06", "03") == []
    assert take(1.0, "07", "06", "04") == ["04", "06"]
    assert take(1.5) == ["07"]
    assert take(20.0, "08") == []
    assert [record["id"] for record in order.rest()] == ["08"]


@pytest.mark.parametrize("width", [60, 80])
def test_how_a_call_went_is_never_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """On a narrow terminal the other columns give it room, in the table and in the lines of --follow."""
    for name, value in {"COLUMNS": str(width), "FORCE_COLOR": "1", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    outcome = "refused:insufficient_scope"
    who = {"name": "somebody-with-a-rather-long-name"}
    record = {"id": "1", "at": "2026-11-17T08:00:00Z", "kind": "call", "principal": who, "tool": f"one__{'x' * 60}"}
    _show_table({"records": [{**record, "outcome": outcome, "ms": 12.0}]})
    _show_line({**record, "outcome": outcome, "ms": 12.0}, as_json=False)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert [outcome in line for line in (lines[2], lines[-1])] == [True, True]
    assert max(map(len, lines)) <= width


async def run(*words: str, config: Path, code: int = 0) -> str:
    """What a command prints; it has a loop of its own."""
    done = await asyncio.to_thread(CliRunner().invoke, app, [*words, "--config", str(config)])
    assert done.exit_code == code, done.output
    return done.output
