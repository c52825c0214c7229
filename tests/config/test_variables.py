"""What `${…}` in a server's entry stands for, and what happens where it stands for nothing."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.config import ServerSpec, read_settings
from pegboard.config.variables import MissingVariable, Variables, input_variable

_ENVIRONMENT = {
    "NAME": "tulip",
    "EMPTY": "",
    "PEGBOARD_INPUT_API_KEY": "rose-1",
    "with.dot": "lily",
    "env": "pansy",
    "input": "aster",
}


def variables(environment: Mapping[str, str] = _ENVIRONMENT) -> Variables:
    return Variables(environment, Path("/home/ada/project"))


def servers_of(folder: Path, entries: Mapping[str, Any], environment: Mapping[str, str]) -> Mapping[str, ServerSpec]:
    path = folder / "pegboard.json"
    path.write_text(json.dumps({"mcpServers": entries}), "utf-8")
    return read_settings(path, environment).servers


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("", ""),
        ("plain $NAME $(x) {NAME}", "plain $NAME $(x) {NAME}"),
        ("${NAME}", "tulip"),
        ("a ${NAME} b ${NAME}c", "a tulip b tulipc"),
        ("${env:NAME}", "tulip"),
        ("${input:api-key}", "rose-1"),
        ("${input:API_KEY}", "rose-1"),
        ("${input:api key}", "rose-1"),
        ("${with.dot}", "lily"),
        ("${env}", "pansy"),
        ("${input}", "aster"),
        ("${NAME:-other}", "tulip"),
        ("${NONE:-other}", "other"),
        ("${NONE:-}", ""),
        ("${EMPTY:-other}", "other"),
        ("${NONE:-a:-b}", "a:-b"),
        ("${NONE:-http://h:80/x?y=1}", "http://h:80/x?y=1"),
        ("$${NAME}", "${NAME}"),
        ("$${NONE}", "${NONE}"),
        ("$${NAME} ${NAME}", "${NAME} tulip"),
        ("$", "$"),
        ("${", "${"),
        ("${NAME", "${NAME"),
        ("${workspaceFolder}/x", "/home/ada/project/x"),
    ],
)
def test_fill(text: str, filled: str) -> None:
    """Each spelling is replaced by its value, and what is not one stays as it is."""
    assert variables().fill(text) == filled


def test_user_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """VS Code's `${userHome}` is the user's home folder."""
    monkeypatch.setenv("HOME", "/home/ada")
    assert variables().fill("${userHome}/x") == "/home/ada/x"


def test_a_value_is_not_filled_again() -> None:
    """What comes out of a variable is taken as it is, even where it looks like another variable."""
    assert variables({"A": "${B}", "B": "tulip"}).fill("${A}") == "${B}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${NONE}", "${NONE} has no value: set NONE in the environment"),
        ("${env:NONE}", "${env:NONE} has no value: set NONE in the environment"),
        ("${input:db-url}", "${input:db-url} has no value: set PEGBOARD_INPUT_DB_URL"),
        ("${NAME}${NONE}", "${NONE} has no value: set NONE in the environment"),
        ("${name}", "${name} has no value: set name in the environment"),
    ],
)
def test_a_missing_variable_is_named(text: str, message: str) -> None:
    """A variable without a value is an error that names it and says what to set."""
    with pytest.raises(MissingVariable) as caught:
        variables().fill(text)
    assert str(caught.value) == message


def test_used_values_are_remembered() -> None:
    """Values from the environment are remembered as secrets; defaults, folders and escapes are not."""
    filler = variables()
    filler.fill("${NAME} ${input:api-key} ${NONE:-public} ${EMPTY:-x} $${with.dot} ${workspaceFolder}")
    assert filler.used == {"tulip", "rose-1"}


@pytest.mark.parametrize(
    ("identifier", "variable"),
    [
        ("id", "PEGBOARD_INPUT_ID"),
        ("api-key", "PEGBOARD_INPUT_API_KEY"),
        ("Db.Url 2", "PEGBOARD_INPUT_DB_URL_2"),
    ],
)
def test_input_variable(identifier: str, variable: str) -> None:
    """VS Code's inputs are asked for under a name that a shell can set."""
    assert input_variable(identifier) == variable


@given(st.text(alphabet=st.characters(exclude_characters="$")))
@settings(derandomize=True)
def test_texts_without_a_dollar_stay(text: str) -> None:
    """Filling in changes nothing where there is nothing to fill in."""
    assert variables().fill(text) == text


@given(st.from_regex(r"[^{}]{0,20}", fullmatch=True))
@settings(derandomize=True)
def test_an_escape_is_always_literal(inside: str) -> None:
    """`$${…}` never asks the environment, whatever stands in the braces."""
    filler = variables()
    assert filler.fill("$${" + inside + "}") == "${" + inside + "}"
    assert filler.used == set()


# In a server's entry

_PLACES: list[tuple[dict[str, Any], str, Any]] = [
    ({"command": "/bin/{}"}, "command", "/bin/{}"),
    ({"command": "x", "args": ["a", "--key={}"]}, "args", ("a", "--key={}")),
    ({"command": "x", "env": {"K": "{}"}}, "env", {"K": "{}"}),
    ({"command": "x", "cwd": "/srv/{}"}, "cwd", "/srv/{}"),
    ({"url": "https://{}.example/mcp"}, "url", "https://{}.example/mcp"),
    ({"serverUrl": "https://{}.example/mcp"}, "url", "https://{}.example/mcp"),
    ({"url": "https://d.example", "headers": {"K": "Bearer {}"}}, "headers", {"K": "Bearer {}"}),
]


def put(shape: Any, text: str) -> Any:
    """The shape with every `{}` replaced."""
    if isinstance(shape, str):
        return shape.replace("{}", text)
    if isinstance(shape, dict):
        return {key: put(value, text) for key, value in shape.items()}
    return type(shape)(put(item, text) for item in shape)


@pytest.mark.parametrize("written", ["${NAME}", "${NAME:-other}", "${env:NAME}", "${input:name}", "${NONE:-tulip}"])
@pytest.mark.parametrize(("shape", "attribute", "meant"), _PLACES)
def test_variables_are_filled_in_everywhere(
    tmp_path: Path, shape: dict[str, Any], attribute: str, meant: Any, written: str
) -> None:
    """Every spelling works in command, args, env, cwd, url and headers."""
    environment = {"NAME": "tulip", "PEGBOARD_INPUT_NAME": "tulip"}
    spec = servers_of(tmp_path, {"docs": put(shape, written)}, environment)["docs"]
    assert getattr(spec, attribute) == put(meant, "tulip")
    assert spec.problem is None


@pytest.mark.parametrize(("shape", "attribute", "meant"), [place for place in _PLACES if place[1] != "url"])
def test_escapes_are_literal_everywhere(tmp_path: Path, shape: dict[str, Any], attribute: str, meant: Any) -> None:
    """`$${NAME}` reaches the server as `${NAME}`."""
    spec = servers_of(tmp_path, {"docs": put(shape, "$${NAME}")}, {"NAME": "tulip"})["docs"]
    assert getattr(spec, attribute) == put(meant, "${NAME}")


@pytest.mark.parametrize(
    ("written", "name"),
    [("${NONE}", "NONE"), ("${env:NONE}", "NONE"), ("${input:no-ne}", "PEGBOARD_INPUT_NO_NE")],
)
@pytest.mark.parametrize("shape", [place[0] for place in _PLACES])
def test_a_missing_variable_is_the_problem_of_its_server(
    tmp_path: Path, shape: dict[str, Any], written: str, name: str
) -> None:
    """A variable without a value is named in that server's problem, and the others go on."""
    entries = {"docs": put(shape, written), "git": {"command": "uvx", "args": ["${NAME}"]}}
    servers = servers_of(tmp_path, entries, {"NAME": "tulip"})
    problem = servers["docs"].problem
    assert problem is not None
    assert written in problem
    assert f"set {name}" in problem
    assert (servers["git"].problem, servers["git"].args) == (None, ("tulip",))


def test_a_server_with_a_problem_keeps_how_it_is_treated(tmp_path: Path) -> None:
    """A missing variable does not switch a server back on or forget what the file says of its tools."""
    entry = {"url": "https://${NONE}", "enabled": False, "ttl": 7, "tools": {"deny": ["x"]}}
    spec = servers_of(tmp_path, {"docs": entry}, {})["docs"]
    assert (spec.enabled, spec.ttl, spec.deny, spec.url) == (False, 7.0, ("x",), None)
    assert spec.problem is not None


def test_a_missing_header_does_not_make_it_another_server(tmp_path: Path) -> None:
    """A token that is not set today does not change where the server is, so its catalog stays its own."""
    entry = {"url": "https://d.example", "headers": {"K": "${TOKEN}"}}
    without = servers_of(tmp_path, {"docs": entry}, {})["docs"]
    having = servers_of(tmp_path, {"docs": entry}, {"TOKEN": "tulip-42"})["docs"]
    assert without.problem is not None
    assert without.fingerprint == having.fingerprint


@pytest.mark.parametrize("value", ["", "not an address", "ftp://d.example", "http://[::1", "https://h:x"])
def test_a_variable_that_is_no_address_is_the_problem_of_its_server(tmp_path: Path, value: str) -> None:
    """The file is fine where only a variable's value is bad: its server has a problem, and the others go on."""
    entries = {"docs": {"url": "${DOCS_URL}"}, "git": {"command": "uvx"}}
    servers = servers_of(tmp_path, entries, {"DOCS_URL": value})
    problem = servers["docs"].problem
    assert problem is not None
    assert problem.startswith('Invalid MCP server config for "docs": url ')
    assert (servers["docs"].url, servers["git"].problem) == (None, None)


def test_an_empty_command_is_the_problem_of_its_server(tmp_path: Path) -> None:
    """A command that is empty once its variable is filled in is missing."""
    spec = servers_of(tmp_path, {"docs": {"command": "${EMPTY}"}}, {"EMPTY": ""})["docs"]
    assert (spec.problem, spec.command) == ('Invalid MCP server config for "docs": missing command', None)


@pytest.mark.parametrize(
    ("file", "workspace"),
    [(".vscode/mcp.json", "."), (".cursor/mcp.json", "."), ("pegboard.json", "."), ("sub/pegboard.json", "sub")],
)
def test_workspace_folder(tmp_path: Path, file: str, workspace: str) -> None:
    """`${workspaceFolder}` is the file's folder, or the one above where a client has a folder of its own."""
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"servers": {"x": {"command": "${workspaceFolder}/run"}}}), "utf-8")
    spec = read_settings(path, {}).servers["x"]
    assert spec.command == str((tmp_path / workspace).resolve() / "run")
