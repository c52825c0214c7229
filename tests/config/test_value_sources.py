"""Values of variables that come from files, from `.env` beside the config, and from the keyring."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pegboard.config import ServerSpec, read_settings
from pegboard.config.dotenv import read_environment_file
from pegboard.config.entry_effects import entry_effects
from pegboard.config.locate import trust_store
from pegboard.config.review import review
from pegboard.config.variables import names_in
from pegboard.log import REDACTED
from sealing.chest import BACKEND

SECRET = "tulip-and-rose-42"


def read_servers(
    folder: Path, environment: Mapping[str, str] | None = None, **entries: Any
) -> Mapping[str, ServerSpec]:
    """The servers of a config in this folder."""
    path = folder / "pegboard.json"
    path.write_text(json.dumps({"mcpServers": entries}), "utf-8")
    return read_settings(path, environment or {}).servers


def docs(token: str) -> dict[str, Any]:
    """An entry with this token."""
    return {"url": "https://docs.example/mcp", "headers": {"Authorization": f"Bearer {token}"}}


# Files


@pytest.mark.scenario("secrets: Values of the config come from files, .env and the keyring")
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_value_comes_from_a_file(tmp_path: Path, end: str) -> None:
    """Its path begins at the config's folder, one line end is left out, and the value is a secret."""
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "docs").write_bytes(f" {SECRET}{end}".encode())
    spec = read_servers(
        tmp_path, docs=docs("${file:keys/docs}"), git={"command": "x", "env": {"T": f"${{file:{tmp_path}/keys/docs}}"}}
    )
    assert spec["docs"].headers == {"Authorization": f"Bearer  {SECRET}"}
    assert spec["git"].env == {"T": f" {SECRET}"}
    assert SECRET in spec["git"].secrets
    assert spec["docs"].redactor.clean(f"it said <{SECRET}>") == f"it said <{REDACTED}>"


def test_a_path_may_begin_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `~` everywhere else in a config."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "token").write_text("one\n\n")
    assert read_servers(tmp_path, git={"command": "x", "env": {"T": "${file:~/token}"}})["git"].env == {"T": "one\n"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "there is no file {folder}/token"),
        (b"", "it is empty"),
        (b"\n", "it is empty"),
        (b"\xff", "it is not UTF-8"),
        (b"x" * (64 * 1024 + 1), "it is larger than 65,536 bytes"),
    ],
)
def test_a_file_that_cannot_be_read_is_the_problem_of_its_server(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    """The others go on."""
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    servers = read_servers(tmp_path, docs=docs("${file:token}"), git={"command": "x"})
    assert servers["docs"].problem == f"${{file:token}} cannot be read: {reason.format(folder=tmp_path)}"
    assert servers["git"].problem is None


@pytest.mark.skipif(os.name == "nt", reason="pipes in folders are POSIX")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Nor is a folder a file."""
    os.mkfifo(tmp_path / "pipe")
    servers = read_servers(tmp_path, a=docs("${file:pipe}"), b=docs("${file:.}"))
    assert all("cannot be read" in (spec.problem or "") for spec in servers.values())


def test_the_storage_may_come_from_a_file(tmp_path: Path) -> None:
    """As a mounted secret does; one that is missing is an error of the config."""
    (tmp_path / "database").write_text("postgresql://h/d\n")
    path = tmp_path / "pegboard.json"
    path.write_text('{"pegboard": {"storage": "${file:database}"}}')
    assert read_settings(path, {}).storage == "postgresql://h/d"


@pytest.mark.scenario("secrets: Pegboard's own secrets reach no server")
def test_the_key_that_seals_is_given_to_no_server(tmp_path: Path) -> None:
    """Not by its variable, nor by its entry of the keyring, whatever an entry says."""
    key = {"PEGBOARD_SECRET_KEY": SECRET, "PEGBOARD_SECRET_KEY_FILE": "/x"}
    expressions = ["${PEGBOARD_SECRET_KEY}", "${env:PEGBOARD_SECRET_KEY_FILE}", "${PEGBOARD_SECRET_KEY:-x}"]
    for expression in [*expressions, "${keyring:pegboard/key-1}"]:
        spec = read_servers(tmp_path, key, a=docs(expression))["a"]
        assert "given to no server" in (spec.problem or "")
        assert SECRET not in str(spec.headers)


# .env beside the config


@pytest.mark.scenario("secrets: Values of the config come from files, .env and the keyring")
def test_a_variable_without_a_value_is_looked_up_in_dotenv(tmp_path: Path) -> None:
    """The environment wins, even where it is empty; a default is for what neither has. Its values are secrets."""
    (tmp_path / ".env").write_text(f"A={SECRET}\nB=from file\nC=from file\nPEGBOARD_INPUT_ID=asked\n")
    env = {"A": "${A}", "B": "${B:-default}", "C": "${env:C}", "D": "${D:-default}", "I": "${input:id}"}
    spec = read_servers(tmp_path, {"B": "from here", "C": ""}, git={"command": "${A}", "env": env})["git"]
    assert spec.env == {"A": SECRET, "B": "from here", "C": "", "D": "default", "I": "asked"}
    assert spec.command == SECRET
    assert SECRET in spec.secrets


def test_dotenv_gives_nothing_that_no_entry_names(tmp_path: Path) -> None:
    """It defines no servers, switches nothing, and reaches no process by itself."""
    (tmp_path / ".env").write_text(
        "EXTRA_MCP_URL=https://x.example\nGIT_MCP_ENABLED=false\nGIT_API_KEY=x\nPATH=/evil\n"
    )
    servers = read_servers(tmp_path, git={"command": "x"})
    assert list(servers) == ["git"]
    assert servers["git"].enabled
    assert servers["git"].env == {}
    assert "EXTRA_MCP_URL" not in os.environ


def test_a_dotenv_that_cannot_be_read_is_remarked_without_its_values(tmp_path: Path) -> None:
    """The servers that need nothing of it work."""
    (tmp_path / ".env").write_text(f"A=1\n{SECRET}\n")
    path = tmp_path / "pegboard.json"
    path.write_text(json.dumps({"mcpServers": {"a": docs("${A}"), "b": {"command": "x"}}}))
    settings = read_settings(path, {})
    assert settings.remarks == (f"{tmp_path.resolve() / '.env'} is not used: line 2: write NAME=VALUE",)
    said = "${A} has no value: set A in the environment; .env is not used: line 2: write NAME=VALUE"
    assert settings.servers["a"].problem == said
    assert settings.servers["b"].problem is None


@pytest.mark.scenario("secrets: Values of the config come from files, .env and the keyring")
def test_beside_a_config_that_was_found_dotenv_decides_neither_what_runs_nor_where_to(tmp_path: Path) -> None:
    """The config was trusted, and `.env` may have come with the next `git pull`: it fills in `env` and `headers`."""
    (tmp_path / ".env").write_text("HOST=evil.example\nTOKEN=mine\nRUN=evil\n")
    path = tmp_path / "pegboard.json"
    entries = {
        "a": {"url": "https://${HOST:-docs.example}/mcp", "headers": {"X": "${TOKEN}"}},
        "b": {"command": "${RUN:-good}", "args": ["${RUN:-good}"], "env": {"T": "${TOKEN}"}},
        "c": {"command": "${RUN}"},
    }
    path.write_text(json.dumps({"mcpServers": entries}))
    trust_store().add(path, path.read_bytes())
    environment = {"PEGBOARD_STATE_DIR": os.environ["PEGBOARD_STATE_DIR"]}
    found, named = (read_settings(path, environment, needs_trust=needs).servers for needs in (True, False))
    assert (found["a"].url, found["a"].headers) == ("https://docs.example/mcp", {"X": "mine"})
    assert (found["b"].command, found["b"].args, found["b"].env) == ("good", ("good",), {"T": "mine"})
    assert "set RUN in the environment; .env does not count here" in (found["c"].problem or "")
    assert (named["a"].url, named["c"].command) == ("https://evil.example/mcp", "evil")


# envFile


@pytest.mark.scenario("secrets: Values of the config come from files, .env and the keyring")
@pytest.mark.parametrize("key", ["envFile", "env_file"])
def test_a_server_gets_the_variables_of_its_file(tmp_path: Path, key: str) -> None:
    """Below those of its `env`; all of them are secrets, and no other server has them."""
    (tmp_path / "git.env").write_text(f"export TOKEN='{SECRET}'\nMODE=quick\n")
    entry = {"command": "x", key: "${workspaceFolder}/git.env", "env": {"MODE": "slow"}}
    servers = read_servers(tmp_path, git=entry, other={"command": "x"})
    assert servers["git"].env == {"TOKEN": SECRET, "MODE": "slow"}
    assert SECRET in servers["git"].secrets
    assert servers["other"].env == {}


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("none.env", "envFile none.env cannot be read: No such file or directory"),
        ("bad.env", "envFile bad.env cannot be read: line 1: write NAME=VALUE"),
        ("${NONE}/x", "${NONE} has no value: set NONE in the environment"),
    ],
)
def test_a_file_of_variables_that_cannot_be_read_is_the_problem_of_its_server(
    tmp_path: Path, path: str, reason: str
) -> None:
    """It names no value."""
    (tmp_path / "bad.env").write_text(SECRET)
    servers = read_servers(tmp_path, git={"command": "x", "envFile": path}, other={"command": "x"})
    assert servers["git"].problem == reason
    assert servers["other"].problem is None


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=b", "b"),
        ("  export A = b c  ", "b c"),
        ("A=", ""),
        ("A=b # remark", "b"),
        ("A=b#c", "b#c"),
        ("A= # remark", ""),
        ("A='b # $(touch x) \\n'", "b # $(touch x) \\n"),
        ('A="b\\n\\"c\\" \\\\" # remark', 'b\n"c" \\'),
        ("A=$(touch x) ${HOME} `id`", "$(touch x) ${HOME} `id`"),
        ("A=b=c", "b=c"),
        ("\ufeffA=b\r", "b"),
    ],
)
def test_lines_are_read_and_never_executed(tmp_path: Path, line: str, value: str) -> None:
    """As people write them for a shell."""
    (tmp_path / "x.env").write_text(f"{line}\n# B=1\n\n", "utf-8")
    assert read_environment_file(tmp_path / "x.env") == {"A": value}


@pytest.mark.parametrize("line", ["A", "=b", "1A=b", "A='b", 'A="b', "A='b'c", "A\0=b"])
def test_a_line_that_means_nothing_is_refused(tmp_path: Path, line: str) -> None:
    """With its number."""
    (tmp_path / "x.env").write_text(f"# first\n{line}\n", "utf-8")
    with pytest.raises(ValueError, match=r"^line 2: "):
        read_environment_file(tmp_path / "x.env")


# The keyring


@pytest.mark.scenario("secrets: Values of the config come from files, .env and the keyring")
def test_a_value_comes_from_the_keyring(tmp_path: Path) -> None:
    """Of a service and a name; one that is not there is the problem of its server, with what to do."""
    (tmp_path / "chest").mkdir()
    (tmp_path / "chest" / "docs.example ada").write_text(SECRET)
    (tmp_path / "chest_backend.py").write_text(BACKEND)
    entries = {
        "a": docs("${keyring:docs.example/ada}"),
        "b": docs("${keyring:docs.example/bob}"),
        "c": docs("${keyring:x}"),
    }
    (tmp_path / "pegboard.json").write_text(json.dumps({"mcpServers": entries}))
    script = """
import json, sys
from pathlib import Path
from pegboard import system_keyring
from pegboard.config import read_settings
system_keyring.LIMIT = 20
servers = read_settings(Path(sys.argv[1]), {}).servers
print(json.dumps([[dict(spec.headers), sorted(spec.secrets), spec.problem] for spec in servers.values()]))
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "CHEST": str(tmp_path / "chest")}
    environment["PYTHON_KEYRING_BACKEND"] = "chest_backend.Chest"
    command = [sys.executable, "-c", script, str(tmp_path / "pegboard.json")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    there, missing, short = json.loads(done.stdout)
    assert there[0] == {"Authorization": f"Bearer {SECRET}"}
    assert SECRET in there[1]
    assert missing[2] == (
        "${keyring:docs.example/bob} cannot be read: unlock the keyring, or add the entry with:"
        " keyring set docs.example bob"
    )
    assert short[2] == "${keyring:x} cannot be read: write ${keyring:SERVICE/NAME}"


def test_without_the_package_the_problem_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""
    monkeypatch.setitem(sys.modules, "keyring", None)
    spec = read_servers(tmp_path, a=docs("${keyring:docs/ada}"))["a"]
    assert spec.problem == "${keyring:docs/ada} cannot be read: pip install 'pegboard[keyring]'"


# What people are told before they trust


def test_files_and_entries_of_the_keyring_are_shown_before_somebody_trusts_them() -> None:
    """They are no variables of the environment, and where they go is said."""
    value = "${file:~/.ssh/id} ${keyring:bank/ada} ${B}"
    entry = {"url": "https://x.example/mcp", "headers": {"A": value}}
    assert names_in(value) == ["B"]
    assert [line for line in entry_effects(entry) if line.startswith("gets")] == [
        "gets B of your environment: it goes to x.example",
        "gets the file ~/.ssh/id: it goes to x.example",
        "gets bank/ada of your keyring: it goes to x.example",
    ]
    shown = "\n".join(effect.shown for effect in review(json.dumps({"mcpServers": {"x": entry}})))
    assert "the file ~/.ssh/id goes to server x" in shown
    assert "bank/ada of your keyring goes to server x" in shown
    assert "${file:~/.ssh/id}" in shown
