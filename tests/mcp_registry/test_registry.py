"""Searching a registry that is slow, full, broken, endless or gone; what was read is kept and used."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mcp_registry.fixture_registry import FixtureRegistry, registry_of
from mcp_registry.records import ALL, BOTH, DELETED, OFFICIAL, PACKAGE_ONLY, REMOTE_ONLY, Record, package, record
from pegboard.config import ConfigError, Settings, parse_settings
from pegboard.mcp_registry import kept_servers, walk
from pegboard.mcp_registry.client import RegistryLimits
from pegboard.mcp_registry.kept_servers import file_of, load_servers
from pegboard.mcp_registry.registry import Found, McpRegistry, registry_address
from pegboard.result import ToolErrorCode, ToolFailure

pytestmark = pytest.mark.anyio
# Nobody waits in a test.
QUICK = RegistryLimits(request=10.0, pause=0.001)
MANY = [record(f"io.github.user{n}/thing-{n}", packages=[package("npm", f"thing-{n}")]) for n in range(30)]


def client_of(registry: FixtureRegistry | str, folder: Path, limits: RegistryLimits = QUICK) -> McpRegistry:
    address = registry if isinstance(registry, str) else registry.url
    return McpRegistry(lambda: address, folder, limits)


def names(found: Found) -> list[str]:
    return [server.name for server in found.servers]


def make_older(registry: FixtureRegistry, folder: Path, by: timedelta) -> None:
    """Let what is kept be from another time."""
    file = file_of(folder, registry.url)
    head, _, rest = file.read_text("utf-8").partition("\n")
    facts = json.loads(head)
    moved = {key: (datetime.fromisoformat(facts[key]) - by).isoformat() for key in ("covered", "checked")}
    file.write_text(f"{json.dumps(facts | moved)}\n{rest}", "utf-8")


async def test_a_search_reads_all_pages_and_ranks_by_name_title_and_description(tmp_path: Path) -> None:
    """Words of a description find a server, what is deleted is not there, what is deprecated comes last."""
    with registry_of(ALL) as registry:
        found = await client_of(registry, tmp_path).search("storm forecasts")
        assert names(found) == ["io.github.alice/weather-mcp", "io.github.alice/old-weather"]
        assert (found.known, found.is_complete, found.notes) == (len(ALL) - 1, True, [])
        assert names(await client_of(registry, tmp_path).search("辞書")) == ["io.github.grace/worter"]
        assert names(await client_of(registry, tmp_path).search("tikets")) == ["com.example/tickets"]
        assert names(await client_of(registry, tmp_path).search("gone")) == []


@pytest.mark.scenario("first hour: The registry is kept on disk")
async def test_what_was_read_is_kept_for_a_day(tmp_path: Path) -> None:
    """The second search asks nobody, also in another process."""
    with registry_of(ALL) as registry:
        await client_of(registry, tmp_path).search("weather")
        asked = len(registry.asked)
        found = await client_of(registry, tmp_path).search("notes")
        assert (names(found), len(registry.asked)) == (["io.github.bob/notes"], asked)


async def test_after_a_day_only_what_changed_is_asked_for(tmp_path: Path) -> None:
    """New and changed servers come, deleted ones go."""
    now = datetime.now(UTC)
    with registry_of([PACKAGE_ONLY, BOTH, REMOTE_ONLY]) as registry:
        await client_of(registry, tmp_path).search("weather")
        make_older(registry, tmp_path, timedelta(hours=25))
        del registry.asked[:]
        moment = now.isoformat()
        gone = {**BOTH, "_meta": {OFFICIAL: {"status": "deleted", "updatedAt": moment}}}
        fresh = record("io.github.zoe/tides", updated=moment, description="Tides and weather at sea.")
        registry.records = [PACKAGE_ONLY, gone, REMOTE_ONLY, fresh]
        found = await client_of(registry, tmp_path).search("weather")
        assert names(found) == ["io.github.alice/weather-mcp", "io.github.zoe/tides"]
        (target,) = registry.asked
        assert "updated_since=" in target
        assert "include_deleted=true" in target
        assert found.known == 3


@pytest.mark.scenario("first hour: The registry is kept on disk")
async def test_without_a_network_it_answers_from_what_is_kept_and_says_how_old_it_is(tmp_path: Path) -> None:
    """Also for one server."""
    with registry_of(ALL) as registry:
        await client_of(registry, tmp_path).search("weather")
        make_older(registry, tmp_path, timedelta(days=3))
    found = await client_of(registry, tmp_path).search("storm")
    assert names(found) == ["io.github.alice/weather-mcp"]
    assert "cannot be reached" in found.notes[0]
    assert "3 days ago" in found.notes[0]
    one = await client_of(registry, tmp_path).server("io.github.alice/weather-mcp")
    assert (one.server.version, one.record["server"]["name"]) == ("1.2.0", "io.github.alice/weather-mcp")
    assert "3 days ago" in one.notes[0]
    with pytest.raises(ToolFailure, match="cannot be reached"):
        await client_of(registry, tmp_path).server("io.github.alice/weather-mcp", "0.0.1")


async def test_without_a_network_and_nothing_kept_it_says_so(tmp_path: Path) -> None:
    """The registry is named, without what is secret in its address."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ToolFailure) as caught:
        await client_of(f"http://user:hunter2@127.0.0.1:{port}", tmp_path).search("x")
    assert caught.value.error.code is ToolErrorCode.UNAVAILABLE
    assert f"the MCP registry at 127.0.0.1:{port} cannot be reached" in str(caught.value)
    assert "hunter2" not in str(caught.value)


BUSY = (429, {"retry-after": "0"}, b"slow down")
BROKEN = (500, {}, b"oops")


@pytest.mark.parametrize("answers", [[BUSY], [BROKEN], [BROKEN, BUSY], [(503, {}, b"")]])
async def test_a_registry_that_is_busy_or_broken_for_a_moment_is_asked_again(
    answers: list[Any], tmp_path: Path
) -> None:
    """At most three times."""
    with registry_of(ALL, first=[*answers]) as registry:
        assert (await client_of(registry, tmp_path).search("weather")).notes == []
    with registry_of(ALL, first=[*answers, *answers, *answers]) as registry:
        registry.first = (registry.first * 3)[:3]
        with pytest.raises(ToolFailure, match=r"answered HTTP \d+"):
            await client_of(registry, tmp_path / "other").search("weather")
        assert len(registry.asked) == 3


async def test_a_long_pause_is_not_waited_for(tmp_path: Path) -> None:
    """The message names it."""
    with registry_of(ALL, first=[(429, {"retry-after": "600"}, b"")]) as registry:
        with pytest.raises(ToolFailure, match="asks for a pause of 600 s"):
            await client_of(registry, tmp_path).search("weather")
        assert len(registry.asked) == 1


async def test_a_wrong_request_is_not_repeated(tmp_path: Path) -> None:
    """It would be as wrong the second time."""
    with registry_of(ALL, first=[(403, {}, b"")]) as registry:
        with pytest.raises(ToolFailure, match="answered HTTP 403"):
            await client_of(registry, tmp_path).search("weather")
        assert len(registry.asked) == 1


GARBAGE: dict[str, bytes] = {
    "it is not JSON": b"<html>welcome to the hotel</html>",
    "it is no list of servers": b'{"servers": {}}',
    "not JSON": b"\xff\xfe",
    "is not a JSON object": b"[]",
    "larger than 200,000 bytes": b'{"servers": []}' + b" " * 200_001,
    "it is not JSON: ": b"[" * 100_000,
}


@pytest.mark.parametrize("reason", GARBAGE)
async def test_garbage_in_the_middle_leaves_what_was_read_before(reason: str, tmp_path: Path) -> None:
    """The answer says what went wrong, and the next search goes on where it stopped."""
    limits = RegistryLimits(page_bytes=200_000, pause=0.001)
    with registry_of(MANY, page_size=10, first=[None, None, (200, {}, GARBAGE[reason])]) as registry:
        client = client_of(registry, tmp_path, limits)
        found = await client.search("thing")
        assert len(found.servers) == 10
        assert not found.is_complete
        assert any("cannot be used" in note for note in found.notes)
        assert any("Search again to read on" in note for note in found.notes)
        del registry.asked[:]
        assert len((await client.search("thing")).servers) == 30
        assert any("cursor=10" in target for target in registry.asked)
        assert not any("cursor" not in target and "search" not in target for target in registry.asked)


async def test_garbage_at_once_is_an_error(tmp_path: Path) -> None:
    """There is nothing to answer from."""
    with registry_of(ALL, first=[(200, {}, b"<html>")]) as registry:
        with pytest.raises(ToolFailure, match="sent an answer that cannot be used: it is not JSON"):
            await client_of(registry, tmp_path).search("weather")


async def test_entries_that_cannot_be_read_are_left_out_and_counted(tmp_path: Path) -> None:
    """Those that are no servers, and those that are too large."""
    large = record("a/large", description="x" * 70_000)
    odd: list[Any] = [None, 5, {"server": {"name": "--x"}}, large]
    with registry_of([PACKAGE_ONLY]) as registry:
        registry.first = [(200, {}, json.dumps({"servers": [*odd, BOTH]}).encode())]
        found = await client_of(registry, tmp_path).search("notes")
    assert names(found) == ["io.github.bob/notes"]
    assert "4 entries of the registry cannot be read, and are left out." in found.notes


async def test_a_server_that_is_too_large_is_refused(tmp_path: Path) -> None:
    """One that is asked for by name has the same limits as one of the list."""
    argument = {"type": "positional", "valueHint": "x" * 300}
    large = record("a/large", packages=[package("npm", "x", packageArguments=[argument] * 200) for _ in range(2)])
    many = record("a/many", packages=[package("npm", "x", packageArguments=[{"type": "positional"}] * 201)])
    with registry_of([large, many]) as registry:
        with pytest.raises(ToolFailure, match="cannot be used: it has more than 65,536 bytes"):
            await client_of(registry, tmp_path).server("a/large")
        with pytest.raises(ToolFailure, match="cannot be used: it has 201 packageArguments, more than 200"):
            await client_of(registry, tmp_path).server("a/many")


CURSORS: tuple[Callable[[str | None], str | None], ...] = (
    lambda _: "0",  # always the same page
    lambda _: f"0-{time.monotonic_ns()}",  # the same page under ever new names
)


@pytest.mark.parametrize("cursor", CURSORS)
async def test_a_list_without_an_end_is_read_once(cursor: Callable[[str | None], str | None], tmp_path: Path) -> None:
    """A cursor that comes again, or pages that say nothing new, end it."""
    with registry_of(MANY, cursor=cursor) as registry:
        found = await client_of(registry, tmp_path).search("thing")
        assert (found.known, found.is_complete) == (4, True)
        assert len(registry.asked) < 10


async def test_no_more_servers_are_kept_than_there_is_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry of millions fills no disk."""
    monkeypatch.setattr(kept_servers, "_MAX_SERVERS", 8)
    with registry_of(MANY) as registry:
        assert (await client_of(registry, tmp_path).search("thing")).known == 8
    monkeypatch.setattr(kept_servers, "_MAX_SERVERS", 50)
    monkeypatch.setattr(walk, "_MAX_PAGES", 3)
    with registry_of(MANY) as registry:
        assert (await client_of(registry, tmp_path / "other").search("nothing-like-it")).known == 12


async def test_a_search_that_takes_too_long_stops_between_pages_and_goes_on_later(tmp_path: Path) -> None:
    """What has the word in its name is asked for first."""
    with registry_of(MANY) as registry:
        client = client_of(registry, tmp_path)
        found = await client.search("thing-29", budget=0)
        assert (names(found)[0], found.known, found.is_complete) == ("io.github.user29/thing-29", 5, False)
        assert found.notes == ["The list was read as far as 5 servers. Search again to read on."]
        assert (await client.search("thing-29", budget=0)).known == 9
        assert (await client.search("thing")).is_complete


async def test_a_page_that_does_not_come_is_given_up(tmp_path: Path) -> None:
    """After the limit, as often as it is tried."""
    limits = RegistryLimits(request=0.05, pause=0.001, tries=2)
    with registry_of(ALL, delay=0.3) as registry:
        with pytest.raises(ToolFailure, match=r"did not answer within 0\.05 s"):
            await client_of(registry, tmp_path, limits).search("weather")
        assert len(registry.asked) == 2


async def test_a_place_in_the_list_that_is_forgotten_is_begun_anew(tmp_path: Path) -> None:
    """The registry refuses a cursor of last week."""
    with registry_of(MANY) as registry:
        client = client_of(registry, tmp_path)
        await client.search("thing", budget=0)
        file = file_of(tmp_path, registry.url)
        file.write_text(file.read_text("utf-8").replace('"cursor":"4"', '"cursor":"expired"'), "utf-8")
        found = await client.search("thing")
        assert (found.known, found.is_complete, found.notes) == (30, True, [])


@pytest.mark.parametrize(
    "content", [b"", b"garbage\n", b'{"format": 99}\n', b'{"format": 1, "checked": "x", "cursor": 5}\n{}\n5']
)
async def test_a_broken_file_counts_as_none(content: bytes, tmp_path: Path) -> None:
    """It is read from the registry again."""
    with registry_of(ALL) as registry:
        file = file_of(tmp_path, registry.url)
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
        assert len((await client_of(registry, tmp_path).search("weather")).servers) == 3
        assert load_servers(file).checked is not None
        assert file.stat().st_mode & 0o77 == 0


async def test_a_file_of_the_future_is_not_believed(tmp_path: Path) -> None:
    """It was written under a wrong clock."""
    with registry_of(ALL) as registry:
        await client_of(registry, tmp_path).search("weather")
        make_older(registry, tmp_path, timedelta(days=-9))
        del registry.asked[:]
        await client_of(registry, tmp_path).search("weather")
        assert registry.asked != []


async def test_a_folder_that_cannot_be_written_stops_no_search(tmp_path: Path) -> None:
    """The answer says so."""
    (tmp_path / "registry").write_text("in the way")
    with registry_of(ALL) as registry:
        found = await client_of(registry, tmp_path).search("storm")
    assert names(found) == ["io.github.alice/weather-mcp"]
    assert "cannot be kept" in found.notes[0]


async def test_each_registry_is_kept_for_itself(tmp_path: Path) -> None:
    """Another address has other servers."""
    with registry_of([PACKAGE_ONLY]) as one, registry_of([BOTH]) as other:
        assert (await client_of(one, tmp_path).search("weather")).known == 1
        assert names(await client_of(other, tmp_path).search("notes weather")) == ["io.github.bob/notes"]


async def test_one_server_by_its_whole_name_and_version(tmp_path: Path) -> None:
    """The name has a slash, which is a part of it."""
    with registry_of(ALL) as registry:
        client = client_of(registry, tmp_path)
        found = await client.server("io.github.alice/weather-mcp", "1.2.0")
        assert found.server.packages[0].identifier == "@alice/weather-mcp"
        assert registry.asked == ["/v0.1/servers/io.github.alice%2Fweather-mcp/versions/1.2.0"]
        with pytest.raises(ToolFailure, match="was deleted from the registry"):
            await client.server("io.github.mallory/gone")


async def test_an_unknown_server_is_answered_with_those_that_come_close(tmp_path: Path) -> None:
    """The same name of another publisher, or a name that is spelt alike."""
    with registry_of(ALL) as registry:
        client = client_of(registry, tmp_path)
        with pytest.raises(ToolFailure, match="Find its name with: pegboard search"):
            await client.server("weather-mcp")
        await client.search("weather")
        for wrong in ("weather-mcp", "io.github.bob/weather-mcp", "io.github.alice/weather-mpc"):
            with pytest.raises(ToolFailure, match=r"did you mean io\.github\.alice/weather-mcp") as caught:
                await client.server(wrong)
            assert caught.value.error.code is ToolErrorCode.NOT_FOUND
        with pytest.raises(ToolFailure, match=r"no version '9'.*the latest is 1\.2\.0"):
            await client.server("io.github.alice/weather-mcp", "9")


async def test_a_registry_that_answers_with_another_server_is_not_believed(tmp_path: Path) -> None:
    """What is shown is what was asked for."""
    with registry_of(ALL, first=[(200, {}, json.dumps(BOTH).encode())]) as registry:
        with pytest.raises(ToolFailure, match="another server than the one that was asked for"):
            await client_of(registry, tmp_path).server("io.github.alice/weather-mcp")
    for odd in (b"{}", b'{"server": []}'):
        with registry_of(ALL, first=[(200, {}, odd)]) as registry:
            with pytest.raises(ToolFailure, match="cannot be used"):
                await client_of(registry, tmp_path).server("io.github.alice/weather-mcp")


def test_the_address_comes_from_the_environment_then_from_the_config() -> None:
    """And is the official registry's if nobody says otherwise."""
    settings = Settings(registry="https://own.example/")
    assert registry_address(settings, {}) == "https://own.example"
    assert registry_address(settings, {"PEGBOARD_REGISTRY": "http://127.0.0.1:1"}) == "http://127.0.0.1:1"
    assert registry_address(Settings(), {}).startswith("https://registry.modelcontextprotocol")
    with pytest.raises(ToolFailure, match="PEGBOARD_REGISTRY must be an http"):
        registry_address(settings, {"PEGBOARD_REGISTRY": "own.example"})


@pytest.mark.parametrize("wrong", ["5", '"registry.example"', '"ftp://x"', '"${UNSET}"'])
def test_an_address_in_the_config_that_is_none_is_an_error(wrong: str) -> None:
    """With file and place."""
    with pytest.raises(ConfigError, match=r"c\.json:1:\d+: pegboard\.registry "):
        parse_settings(f'{{"pegboard": {{"registry": {wrong}}}}}', Path("c.json"), {})
    filled = parse_settings('{"pegboard": {"registry": "https://${X}/r"}}', Path("c.json"), {"X": "own.example"})
    assert filled.registry == "https://own.example/r"


def test_deleted_is_what_the_fixture_says() -> None:
    """Or the tests above would pass for the wrong reason."""
    meta: Record = DELETED["_meta"][OFFICIAL]
    assert meta["status"] == "deleted"
