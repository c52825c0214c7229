"""The preview shows what will change, and nothing secret of what stands around it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from client_configs.places import context_of, with_working_servers
from pegboard.client_configs.context import InstallOptions
from pegboard.client_configs.install import InstallPlan, plan_install
from pegboard.client_configs.table import find_client

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
]


@pytest.mark.parametrize("entry", ENTRIES, ids=[json.dumps(entry) for entry in ENTRIES])
@pytest.mark.parametrize("indent", [None, 2])
def test_secrets_of_other_entries_are_masked(tmp_path: Path, entry: dict[str, Any], indent: int | None) -> None:
    """In lines that stay, and in lines that change."""
    plan = plan_for(tmp_path, json.dumps({"mcpServers": {"other": entry}}, indent=indent))
    assert SECRET not in plan.diff
    assert indent or "[redacted]" in plan.diff
    assert '"pegboard"' in plan.diff


def test_secrets_of_entries_that_are_taken_out_are_masked(tmp_path: Path) -> None:
    """`--replace` shows the lines that go, without what is secret in them."""
    entry = {"command": "uvx", "args": ["x"], "env": {"TOKEN": SECRET}}
    context_of(tmp_path).config.write_text(json.dumps({"mcpServers": {"x": entry}}))
    plan = plan_for(tmp_path, json.dumps({"mcpServers": {"x": entry}}, indent=1), replace=True)
    assert plan.replaced == ("x",)
    assert SECRET not in plan.diff
    assert '-   "command": "uvx",' in plan.diff


def test_secrets_in_toml_are_masked(tmp_path: Path) -> None:
    """Codex has them in tables and in headers."""
    table = f'[mcp_servers.x]\nurl = "https://e.com/mcp"\nhttp_headers = {{ "X-A" = "{SECRET}" }}\n'
    text = f'{table}[mcp_servers.x.env]\nA_TOKEN = "{SECRET}"\n'
    plan = plan_for(tmp_path, text, "codex")
    assert SECRET not in plan.diff
    assert "+[mcp_servers.pegboard]" in plan.diff


def test_a_long_file_is_compared_where_it_changes(tmp_path: Path) -> None:
    """The diff of a file of many lines is as short, and is made at once."""
    document = {"mcpServers": {}, "z": [n % 7 for n in range(60_000)]}
    plan = plan_for(tmp_path, json.dumps(document, indent=0))
    assert len(plan.diff.splitlines()) < 20
    assert '+  "pegboard": {' in plan.diff
