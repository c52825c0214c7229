"""What the documentation shows runs, or is read by what it is for."""

from __future__ import annotations

import ast
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from docpages.pages import DOCS, Block, DocPage, all_pages
from docpages.shell import command_problem, shown_commands
from pegboard.config import jsonc
from pegboard.config.read import parse_settings

PAGES = {page.name: page for page in all_pages()}
PYTHON = {name: page for name, page in PAGES.items() if any(page.blocks("python"))}
# Their snippets need a client of a model provider, or are files of an example.
NOT_RUN = ("README.md", "CONTRIBUTING.md")
DATA = {name: page for name, page in PAGES.items() if any(page.blocks("json", "jsonc", "toml", "yaml"))}
SHELL = {name: page for name, page in PAGES.items() if any(shown_commands(page))}


@pytest.mark.parametrize("name", sorted(PYTHON.keys() - set(NOT_RUN)))
def test_the_python_of_a_page_runs_from_top_to_bottom(name: str) -> None:
    """As one program; an error names the page and its line."""
    names: dict[str, object] = {"__name__": Path(name).stem}
    for block in PYTHON[name].blocks("python"):
        exec(compile("\n" * (block.line - 1) + block.text, name, "exec"), names)


@pytest.mark.parametrize("name", NOT_RUN)
def test_python_that_is_not_run_is_python(name: str) -> None:
    """It compiles, `await` at the top included."""
    for block in PYTHON[name].blocks("python"):
        compile(block.text, f"{name}:{block.line}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize("name", sorted(DATA))
def test_data_can_be_read(name: str) -> None:
    """JSON, JSON with comments and TOML parse; what is a config of Pegboard is accepted without a remark."""
    for block in DATA[name].blocks("json", "jsonc", "toml", "yaml"):
        value = parse(block, f"{name}:{block.line}")
        if is_config(DATA[name], value):
            check_config(block, name)


def parse(block: Block, place: str) -> Any:
    """The value of a block."""
    try:
        if block.kind == "toml":
            return tomllib.loads(block.text)
        if block.kind == "yaml":
            import yaml

            return yaml.safe_load(block.text)
        return json.loads(block.text) if block.kind == "json" else jsonc.parse(block.text).value
    except ValueError as exc:
        pytest.fail(f"{place}: {exc}")


def is_config(page: DocPage, value: object) -> bool:
    """Whether it is Pegboard's own config: pages of clients show the files of others."""
    is_foreign = page.path.parent == DOCS / "clients"
    return isinstance(value, dict) and not is_foreign and not {"mcpServers", "pegboard"}.isdisjoint(value)


def check_config(block: Block, name: str) -> None:
    """Pegboard's reader finds nothing wrong and nothing unknown."""
    settings = parse_settings(block.text, Path(f"{name}:{block.line}"), Environment())
    assert settings.remarks == ()
    # What a file or a keyring of the reader's has, this machine cannot know.
    problems = [spec.problem for spec in settings.servers.values() if spec.problem]
    assert [problem for problem in problems if not problem.startswith(("${file:", "${keyring:"))] == []


class Environment(dict[str, str]):
    """Every variable has a value, one that is called an address has one."""

    def __missing__(self, name: str) -> str:
        return "postgresql://x" if name.endswith("_URL") else "x"

    def get(self, name: str, default: Any = None) -> Any:
        """Any of them."""
        return self[name]

    def __contains__(self, name: object) -> bool:
        return True


@pytest.mark.parametrize("name", sorted(SHELL))
def test_commands_are_those_of_the_command_line(name: str) -> None:
    """Every `pegboard …` names a command that there is, with options that it has."""
    problems = {" ".join(words): command_problem(words) for words in shown_commands(SHELL[name])}
    assert {words: problem for words, problem in problems.items() if problem} == {}


def test_there_are_snippets() -> None:
    """Or the tests above would pass for the wrong reason."""
    assert "docs/formats.md" in PYTHON
    assert "README.md" in DATA
    assert "docs/get-started.md" in SHELL


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("serve --port 1", None),
        ("serve --prot 1", "serve has no option --prot"),
        ("sevre", "there is no command 'sevre'"),
        ("add time -- uvx --from x y", None),
        ("memory search words --limit 3", None),
        ("memory serach words", "there is no command 'serach'"),
    ],
)
def test_a_wrong_command_is_noticed(line: str, problem: str | None) -> None:
    """The check itself can fail."""
    assert command_problem(line.split()) == problem
