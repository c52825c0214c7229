"""What is said of a server that does not start: why, in its own last words, and once."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import Entry, open_board
from pegboard.servers.transports.stdio import _last_lines

pytestmark = pytest.mark.anyio


async def message_of(tmp_path: Path, entry: Entry) -> str:
    """What a refresh of a server with this entry says."""
    async with open_board(tmp_path, {"zebra": entry}) as board:
        result = await board.refresh(["zebra"])
        assert result.error is not None
        assert str(board.servers["zebra"].last_error) in result.error.message
        return result.error.message


def shell(script: str, **more: object) -> Entry:
    return {"command": "sh", "args": ["-c", script], **more}


async def test_a_start_that_takes_too_long_names_the_setting_and_what_was_said(tmp_path: Path) -> None:
    """Whoever waits for a download can see it, and knows what to change."""
    said = await message_of(tmp_path, shell("echo fetching >&2; exec sleep 60", startTimeout=1.5))
    assert 'timed out: no answer within 1.5 s (its "startTimeout"); it said: fetching' in said


async def test_a_program_that_is_no_server_is_told_by_what_it_writes(tmp_path: Path) -> None:
    """An exit code of 0 alone would help nobody."""
    said = await message_of(tmp_path, shell("echo Usage: frobnicate FILE; exit 0"))
    assert "it wrote 'Usage: frobnicate FILE', which is not JSON-RPC: is it an MCP server?" in said
    assert "exited with code 0" in said


async def test_the_lines_that_tell_are_kept(tmp_path: Path) -> None:
    """Of npm's many the last whole ones, and not where its log is."""
    lines = ["npm warn old lockfile " + "x" * 300, "npm error code E404", "npm error 404 Not Found - GET https://r/pkg"]
    lines += [
        "npm error 404 'pkg@*' is not in this registry.",
        "npm error A complete log of this run can be found in: /x",
    ]
    script = "".join(f'echo "{line}" >&2;' for line in lines)
    said = await message_of(tmp_path, shell(f"{script} exit 1"))
    assert "it said: " in said
    assert said.endswith(" | ".join(lines[1:4]))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\nc", "a | b | c"),
        ("aaaa\nbbbb\n\ncccc", "… | bbbb | cccc"),
        ("0123456789abc", "3456789abc"),
        ("", ""),
    ],
)
def test_only_whole_lines_are_shown(text: str, shown: str) -> None:
    """As many from the end as there is room for; of a very long one its end."""
    assert _last_lines(text, 10) == shown


async def test_the_error_of_a_node_server_is_kept_and_its_stack_is_not(tmp_path: Path) -> None:
    """Frames, brackets and the version fill the room in which the cause has to stand."""
    frames = [f"    at Module._load{number} (node:internal/modules/cjs/loader:{number})" for number in range(25)]
    lines = ["node:internal/modules/cjs/loader:1228", "  throw err;", "  ^", "", "Error: Cannot find module './x'"]
    lines += [*frames, "{", "  code: 'MODULE_NOT_FOUND',", "}", "", "Node.js v20.1.0"]
    (tmp_path / "said").write_text("\n".join(lines) + "\n")
    said = await message_of(tmp_path, shell(f"cat '{tmp_path}/said' >&2; exit 1"))
    assert said.endswith("it said: Error: Cannot find module './x' | code: 'MODULE_NOT_FOUND',")


def test_the_last_error_comes_first_where_much_was_written_behind_it() -> None:
    """It is why the rest was written."""
    text = "\n".join(["noted", "TypeError: x", *(f"detail {number}" for number in range(20))])
    assert _last_lines(text, 40) == "TypeError: x | … | detail 17 | detail 18 | detail 19"


@pytest.mark.parametrize(
    "entry", [{"url": "http://127.0.0.1:9/mcp"}, {"command": "no-such-command-here"}, shell("exit 3")]
)
async def test_the_servers_name_is_said_once(tmp_path: Path, entry: Entry) -> None:
    """A message is shown behind the name often enough."""
    assert (await message_of(tmp_path, entry)).count("zebra") == 1
