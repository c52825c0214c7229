"""The preview shows what will change, and no value of what stands around it: nobody knows which of them are secret."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from client_configs.places import context_of, with_working_servers
from pegboard.client_configs.context import InstallOptions
from pegboard.client_configs.install import InstallPlan, plan_install
from pegboard.client_configs.table import find_client
from pegboard.client_configs.uninstall import plan_uninstall
from pegboard.client_configs.value_mask import mask_values

SECRET = "hunter2-s3cr3t"
CURSOR = find_client("cursor")


def plan_for(tmp_path: Path, text: str, client: str = "cursor", **options: Any) -> InstallPlan:
    program, context = find_client(client), with_working_servers(context_of(tmp_path))
    file = program.target(context.place)
    assert file is not None
    file.path.parent.mkdir(parents=True)
    file.path.write_text(text)
    return plan_install(program, context, InstallOptions(**options))


def test_a_preview_is_a_unified_diff(tmp_path: Path) -> None:
    """The path, the lines around, and the new lines."""
    plan = plan_for(tmp_path, '{\n  "mcpServers": {\n    "a": {}\n  }\n}\n')
    path = tmp_path / "home" / ".cursor" / "mcp.json"
    assert plan.diff.splitlines() == [
        f"--- {path}",
        f"+++ {path}",
        "@@ -1,5 +1,8 @@",
        " {",
        '   "mcpServers": {',
        '-    "a": {}',
        '+    "a": {},',
        '+    "pegboard": {',
        '+      "url": "http://127.0.0.1:7420/mcp/cursor"',
        "+    }",
        "   }",
        " }",
    ]


ENTRIES: list[dict[str, Any]] = [
    {"command": "x", "env": {"API_KEY": SECRET}},
    {"command": "x", "args": ["--token", SECRET]},
    {"command": "x", "args": [f"--token={SECRET}"]},
    {"command": "x", "args": ["--header", f"Authorization: Bearer {SECRET}"]},
    {"url": "https://example.com/mcp", "headers": {"X-Anything": SECRET}},
    {"url": "https://example.com/mcp", "headers": {"Authorization": f"Bearer {SECRET}"}},
    {"url": f"https://me:{SECRET}@example.com/mcp"},
    {"url": f"https://example.com/mcp?key={SECRET}"},
    {"password": SECRET},
    {"nested": {"deep": [{"apiKey": SECRET}]}},
    # Where nothing says that it is one.
    {"command": "x", "env": {"GH": SECRET}},
    {"command": "x", "args": [SECRET]},
    {"command": SECRET},
    {"url": f"https://example.com/{SECRET}/mcp"},
    {"headers": {}, "note": f"it is {SECRET}"},
    {f"https://me:{SECRET}@example.com": 1},
]


@pytest.mark.scenario("first hour: A preview shows no values of others")
@pytest.mark.parametrize("entry", ENTRIES, ids=[json.dumps(entry) for entry in ENTRIES])
@pytest.mark.parametrize("indent", [None, 2])
def test_secrets_of_other_entries_are_masked(tmp_path: Path, entry: dict[str, Any], indent: int | None) -> None:
    """In lines that stay, and in lines that change."""
    plan = plan_for(tmp_path, json.dumps({"mcpServers": {"other": entry}}, indent=indent))
    assert SECRET not in plan.diff
    assert indent or "…" in plan.diff or "[redacted]" in plan.diff
    assert '"url": "http://127.0.0.1:7420/mcp/cursor"' in plan.diff


SPELLINGS = [
    SECRET.replace("-", "\\u002d"),
    SECRET.replace("-", "\\/"),
    SECRET.replace("-", '\\"'),
    f"{SECRET}\\\\",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_value_is_masked_however_it_is_written(tmp_path: Path, spelling: str) -> None:
    """JSON has more than one spelling for a text."""
    text = f'{{"mcpServers": {{\n"other": {{"command": "x", "args": [\n"--token",\n"{spelling}"]}}}}}}'
    plan = plan_for(tmp_path, text)
    assert "hunter2" not in plan.diff
    assert "s3cr3t" not in plan.diff
    assert '\n-"…"]}}}' in plan.diff


def test_comments_and_numbers_are_masked(tmp_path: Path) -> None:
    """An entry that somebody commented out keeps its secrets, and a PIN is a number."""
    old = f'"old": {{"env": {{"K": "{SECRET}"}}}}'
    text = f'{{\n// {old}\n/* {old}\n{old} */\n"mcpServers": {{\n"a": {{"pin": 83471, "on": true}} // {old}\n}}\n}}'
    lines = plan_for(tmp_path, text).diff.splitlines()
    assert lines[2:7] == [
        "@@ -4,5 +4,8 @@",
        " … */",
        ' "mcpServers": {',
        '-"a": {"pin": …, "on": true} // …',
        '+"a": {"pin": …, "on": true}, // …',
    ]


def test_an_entry_of_ours_shows_where_it_led_and_no_more(tmp_path: Path) -> None:
    """On an update, and on the way out; what somebody added to it is masked."""
    args = ["stdio", "--board", "b1", "--header", SECRET]
    entry = {"type": "stdio", "command": "/old/pegboard", "args": args, "env": {"GH": SECRET}}
    update = plan_for(tmp_path, json.dumps({"mcpServers": {"pegboard": entry}}, indent=0)).diff
    for diff in (update, plan_uninstall(CURSOR, context_of(tmp_path)).diff):
        assert SECRET not in diff
        for line in ('"type": "stdio",', '"command": "/old/pegboard",', '"b1",', '"GH": "…"'):
            assert f"\n-{line}\n" in diff


def test_an_address_of_ours_with_more_in_it_is_masked(tmp_path: Path) -> None:
    """A query may hold a key."""
    entry = {"url": f"http://127.0.0.1:7420/mcp?key={SECRET}"}
    assert SECRET not in plan_for(tmp_path, json.dumps({"mcpServers": {"pegboard": entry}}, indent=2)).diff
    assert SECRET not in plan_uninstall(CURSOR, context_of(tmp_path)).diff


def test_an_entry_that_is_overwritten_shows_the_new_value_alone(tmp_path: Path) -> None:
    """The old one is somebody else's."""
    text = json.dumps({"mcpServers": {"pegboard": {"url": f"https://a.example/{SECRET}"}}}, indent=2)
    assert plan_for(tmp_path, text).outcome == "refused"
    plan = plan_install(CURSOR, context_of(tmp_path), InstallOptions(force=True))
    assert [line for line in plan.diff.splitlines() if "url" in line] == [
        '-      "url": "…"',
        '+      "url": "http://127.0.0.1:7420/mcp/cursor"',
    ]


def test_secrets_of_entries_that_are_taken_out_are_masked(tmp_path: Path) -> None:
    """`--replace` shows the lines that go, without the values in them."""
    entry = {"command": "uvx", "args": ["x"], "env": {"TOKEN": SECRET}}
    context_of(tmp_path).config.write_text(json.dumps({"mcpServers": {"x": entry}}))
    plan = plan_for(tmp_path, json.dumps({"mcpServers": {"x": entry}}, indent=1), replace=True)
    assert plan.replaced == ("x",)
    assert SECRET not in plan.diff
    assert '-   "command": "…",' in plan.diff


def test_secrets_in_toml_are_masked(tmp_path: Path) -> None:
    """Codex has them in tables and in headers; a preview shows the last lines before the new table."""
    plan = plan_for(tmp_path, f'[mcp_servers.x]\nhttp_headers = {{ "X-A" = "{SECRET}" }}\nb = \'{SECRET}\'', "codex")
    assert plan.diff.splitlines()[3:] == [
        ' http_headers = { "X-A" = "…" }',
        " b = '…'",
        "+",
        "+[mcp_servers.pegboard]",
        '+url = "http://127.0.0.1:7420/mcp/codex"',
    ]


TOML = [
    ('a = "s"', 'a = "…"'),
    ("a = 's' # s", "a = '…' # …"),
    ("# s", "# …"),
    ("a = 12", "a = …"),
    ("a = true", "a = true"),
    ("a = 1979-05-27 07:32:00", "a = … …"),
    ("[a.'b c'.\"d\"]", "[a.'b c'.\"d\"]"),
    ('[[a]]\nb.c = "s"', '[[a]]\nb.c = "…"'),
    ('a = ["s", # s\n["s"]]\n"b" = "s"', 'a = ["…", # …\n["…"]]\n"b" = "…"'),
    ("a = {b = 's', 'c d' = [1, {e = 2}]}\n[f]", "a = {b = '…', 'c d' = […, {e = …}]}\n[f]"),
    ('a = """s\n"s" \\"""\ns"""\nb = 1', "a = …\n…\n…\nb = …"),
    ("a = '''s\ns = 's''''\nb = 1", "a = …\n…\nb = …"),
    ('a = "\\"s" # "s', 'a = "…" # …'),
    ('a = "s"\r\nb = "s"\r\n', 'a = "…"\r\nb = "…"\r\n'),
    ('a = "ours"', 'a = "ours"'),
]


@pytest.mark.parametrize(("text", "masked"), TOML)
def test_every_value_of_toml_is_masked(text: str, masked: str) -> None:
    """However it is written; lines and names stay."""
    tomllib.loads(text)
    assert mask_values(text, "toml", {'"ours"'}) == masked


def test_a_long_file_is_compared_where_it_changes(tmp_path: Path) -> None:
    """The diff of a file of many lines is as short, is made at once, and says in which line it is."""
    document = {"a": [n % 7 for n in range(30_000)], "mcpServers": {}, "z": [n % 7 for n in range(30_000)]}
    plan = plan_for(tmp_path, json.dumps(document, indent=0))
    assert len(plan.diff.splitlines()) < 20
    assert plan.diff.splitlines()[2] == "@@ -30002,5 +30002,9 @@"
    assert '+  "pegboard": {' in plan.diff
