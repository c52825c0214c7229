"""A toolset is one folder and one line: taken out it is gone, put in it is there, and all the rest works."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from forking import COLD_START
from harness import LIMIT, http_client, serving, write_config
from pegboard.toolsets.installed import TOOLSETS

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
# How the names of a toolset's tools begin, its paths, and what its main table is called.
TOOLS = {
    "discovery": "tool_",
    "memory": "memory_",
    "chats": "copilot_chat_",
    "tasks": "registry_",
    "results": "result_",
}
PATHS = {"memory": "/api/memor", "chats": "/api/chat", "tasks": "/api/tasks"}
TABLES = {"memory": "memories", "tasks": "tasks"}
EXAMPLE = re.compile(r"^`toolsets/(counters/\w+\.py)`.*?^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
IMPORT_ALL = """
import importlib, pathlib, pegboard
home = pathlib.Path(pegboard.__file__).parent
for file in sorted(home.rglob("*.py")):
    if file.name != "__main__.py":
        try:
            importlib.import_module(".".join(("pegboard", *file.relative_to(home).with_suffix("").parts)))
        except ModuleNotFoundError as exc:
            # A driver that only some install.
            assert not (exc.name or "").startswith("pegboard"), exc
print(home)
"""


class Tree:
    """A copy of the source whose toolsets can be others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.toolsets = folder / "pegboard" / "toolsets"
        shutil.copytree(ROOT / "src" / "pegboard", folder / "pegboard", ignore=shutil.ignore_patterns("__pycache__"))

    def install(self, *names: str) -> None:
        """Write the line that says which toolsets there are."""
        file = self.toolsets / "installed.py"
        line = f"TOOLSETS = {json.dumps(names).replace('[', '(').replace(']', ',)')}"
        text, times = re.subn(r"^TOOLSETS = .*$", line, file.read_text("utf-8"), flags=re.MULTILINE)
        assert times == 1
        file.write_text(text, "utf-8")

    def run(self, *arguments: str) -> str:
        """What Python prints in this tree."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        done = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, timeout=100, check=False, env=environment
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """The source as it is, to be changed."""
    return Tree(tmp_path / "source")


async def look(url: str) -> tuple[set[str], set[str]]:
    """The tools that a gateway lists, and the paths that it describes."""
    async with http_client(url) as client, httpx2.AsyncClient(timeout=LIMIT) as web:
        tools = await client.request("tools/list", {})
        document: dict[str, Any] = (await web.get(url.replace("/mcp", "/openapi.json"))).json()
    return {tool["name"] for tool in tools["tools"]}, set(document["paths"])


@pytest.mark.parametrize("removed", TOOLSETS)
async def test_a_toolset_without_its_folder_is_gone(removed: str, tree: Tree, tmp_path: Path) -> None:
    """Its tools, paths, commands, settings and tables; every other module can be imported, and a gateway starts."""
    left = [name for name in TOOLSETS if name != removed]
    shutil.rmtree(tree.toolsets / removed)
    tree.install(*left)
    assert tree.run("-c", IMPORT_ALL).strip() == str(tree.folder / "pegboard")
    commands = set(re.findall(r"^  (\w+) ", tree.run("-m", "pegboard", "--help"), flags=re.MULTILINE))
    assert commands & set(TOOLSETS) == set(left) - {"discovery", "results"}
    keys = tree.run("-c", "from pegboard.config.own import settings_keys; print(*settings_keys())").split()
    assert set(keys) & set(TOOLSETS) - {"results"} == {"memory", "chats"} - {removed}
    kept = tmp_path / "kept.db"
    own: dict[str, Any] = {"toolsets": left, "storage": f"sqlite:{kept}", "results": {"cap": 1000}}
    config = write_config(tmp_path / "pegboard.json", {}, **own)
    with serving(config, command=COLD_START, PYTHONPATH=str(tree.folder)) as (_, url):
        tools, paths = await look(url)
    assert there(TOOLS, tools) == set(left)
    assert there(PATHS, paths) == set(PATHS) - {removed}
    with contextlib.closing(sqlite3.connect(kept)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    assert there(TABLES, tables) == set(TABLES) - {removed}


def there(beginnings: dict[str, str], names: set[str]) -> set[str]:
    """The toolsets of which some name begins so."""
    return {toolset for toolset, start in beginnings.items() if any(name.startswith(start) for name in names)}


async def test_the_toolset_of_the_contributors_page_works(tree: Tree, tmp_path: Path) -> None:
    """Built from the page as it stands, it counts over MCP, REST and on the command line, as the config says."""
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for name, text in EXAMPLE.findall(page):
        (tree.toolsets / name).parent.mkdir(exist_ok=True)
        (tree.toolsets / name).write_text(text, "utf-8")
    tree.install(*TOOLSETS, "counters")
    own: dict[str, Any] = {"toolsets": ["counters"], "counters": {"start": 40}, "storage": f"sqlite:{tmp_path}/kept.db"}
    config = write_config(tmp_path / "pegboard.json", {}, **own)
    assert tree.run("-m", "pegboard", "count", "coffee", "--config", str(config)) == "41\n"
    with serving(config, command=COLD_START, PYTHONPATH=str(tree.folder)) as (_, url):
        tools, paths = await look(url)
        async with http_client(url) as client, httpx2.AsyncClient(timeout=LIMIT) as web:
            called = await client.request("tools/call", {"name": "counter_add", "arguments": {"name": "coffee"}})
            answer = (await web.post(url.replace("/mcp", "/api/counters/coffee"), json={"by": 8})).json()
        assert tree.run("-m", "pegboard", "count", "coffee", "--by", "50", "--config", str(config)) == "100\n"
    assert (tools, "/api/counters/{name}" in paths) == ({"counter_add"}, True)
    assert called["structuredContent"]["data"] == {"name": "coffee", "value": 42}
    assert answer == {"success": True, "data": {"name": "coffee", "value": 50}}
