"""What a config file means: every shape that clients write, and every setting of ours."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pegboard.config import ConfigError, ServerSpec, Settings, read_settings


def settings_of(
    folder: Path, config: Mapping[str, Any] | str, environment: Mapping[str, str] | None = None
) -> Settings:
    """The settings of a file with this content."""
    path = folder / "pegboard.json"
    path.write_bytes((config if isinstance(config, str) else json.dumps(config)).encode())
    return read_settings(path, environment or {})


def server_of(folder: Path, entry: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> ServerSpec:
    """The one server of a file that has this entry, called `docs`."""
    return settings_of(folder, {"mcpServers": {"docs": entry}}, environment).servers["docs"]


# The file and its sections


def test_without_a_file_the_defaults_hold() -> None:
    """No file at all is a valid config: no servers, and every setting as the contract gives it."""
    settings = read_settings(None, {})
    assert settings == Settings()
    assert settings.path is None
    assert settings.servers == {}
    assert settings.expose == "auto"
    assert settings.pinned == ("memory_search", "memory_fulltext_search")
    assert settings.toolsets == ("discovery", "memory", "chats", "tasks")
    assert settings.max_name_length == 48
    assert settings.storage == "sqlite"


@pytest.mark.parametrize("config", [{}, {"mcpServers": {}}, {"servers": {}}, {"mcpServers": None, "pegboard": None}])
def test_an_empty_config_is_no_error(tmp_path: Path, config: dict[str, Any]) -> None:
    """Sections that are missing, empty or null leave the defaults and bring no servers."""
    settings = settings_of(tmp_path, config)
    assert settings == Settings(path=tmp_path / "pegboard.json")


def test_the_contracts_example_reads_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of the contract gives exactly the servers and settings it shows."""
    monkeypatch.setenv("HOME", "/home/ada")
    config = """{
      "mcpServers": {
        "git":  {"command": "uvx", "args": ["mcp-server-git"], "env": {"TZ": "UTC"}, "cwd": "~/src"},
        "docs": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${DOCS_TOKEN}"},
                 "enabled": true, "timeout": 30, "connectTimeout": 5, "startTimeout": 60,
                 "idleTimeout": 600, "ttl": 300, "prefix": true, "instance": "shared",
                 "tools": {"allow": ["search_*"], "deny": ["*_delete"]},
                 "keywords": {"search_docs": ["manual", "handbook"]}}
      },
      "pegboard": {
        "expose": "auto", "pinned": ["memory_search", "memory_fulltext_search"],
        "toolsets": ["discovery", "memory", "chats", "tasks"],
        "renamed": {"old_name": "new_name"}, "maxNameLength": 48, "storage": "sqlite"
      }
    }"""
    assert settings_of(tmp_path, config, {"DOCS_TOKEN": "tulip-42"}) == Settings(
        path=tmp_path / "pegboard.json",
        renamed={"old_name": "new_name"},
        servers={
            "git": ServerSpec(
                name="git",
                given_name="git",
                transport="stdio",
                transport_guessed=True,
                command="uvx",
                args=("mcp-server-git",),
                env={"TZ": "UTC"},
                cwd="/home/ada/src",
            ),
            "docs": ServerSpec(
                name="docs",
                given_name="docs",
                transport="http",
                url="https://example.com/mcp",
                headers={"Authorization": "Bearer tulip-42"},
                timeout=30,
                allow=("search_*",),
                deny=("*_delete",),
                keywords={"search_docs": ("manual", "handbook")},
                secrets=frozenset({"Bearer tulip-42", "tulip-42"}),
            ),
        },
    )


def test_vs_codes_shape_is_read(tmp_path: Path) -> None:
    """VS Code's `servers` with `inputs` is read like `mcpServers`."""
    config = {
        "inputs": [{"type": "promptString", "id": "api-key", "password": True}],
        "servers": {
            "docs": {"type": "http", "url": "https://d.example", "headers": {"X-Key": "${input:api-key}"}},
            "git": {"type": "stdio", "command": "uvx", "args": ["mcp-server-git"]},
        },
    }
    settings = settings_of(tmp_path, config, {"PEGBOARD_INPUT_API_KEY": "tulip-42"})
    assert list(settings.servers) == ["docs", "git"]
    assert settings.servers["docs"].headers == {"X-Key": "tulip-42"}
    assert settings.servers["git"].command == "uvx"
    assert [spec.problem for spec in settings.servers.values()] == [None, None]


def test_both_sections_in_one_file_are_joined(tmp_path: Path) -> None:
    """A file with `mcpServers` and `servers` has the servers of both, in that order."""
    config = {"servers": {"b": {"command": "b"}}, "mcpServers": {"a": {"command": "a"}}}
    assert list(settings_of(tmp_path, config).servers) == ["a", "b"]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_comments_commas_bom_and_line_endings(tmp_path: Path, bom: str, ending: str) -> None:
    """Comments, trailing commas, a BOM and any line ending are read as if they were not there."""
    lines = ["// mine", "{", '"mcpServers": { /* one */', '"git": {"command": "uvx", "args": ["a", "b",],},', "},", "}"]
    settings = settings_of(tmp_path, bom + ending.join(lines) + ending)
    assert settings.servers["git"].args == ("a", "b")


def test_servers_keep_the_order_of_the_file(tmp_path: Path) -> None:
    """Servers come in the order in which the file has them, not sorted."""
    names = ["zebra", "ape", "mole"]
    config = {"mcpServers": {name: {"command": name} for name in names}}
    assert list(settings_of(tmp_path, config).servers) == names


# One server's entry: where it is


@pytest.mark.parametrize(
    ("entry", "transport", "guessed"),
    [
        ({"command": "uvx"}, "stdio", True),
        ({"type": "stdio", "command": "uvx"}, "stdio", False),
        ({"url": "https://d.example"}, "http", True),
        ({"serverUrl": "https://d.example"}, "http", True),
        ({"type": "http", "url": "https://d.example"}, "http", False),
        ({"type": "http", "serverUrl": "https://d.example"}, "http", False),
        ({"type": "streamable-http", "url": "https://d.example"}, "http", False),
        ({"type": "streamableHttp", "url": "https://d.example"}, "http", False),
        ({"type": "streamable_http", "url": "https://d.example"}, "http", False),
        ({"type": "sse", "url": "https://d.example"}, "sse", False),
        ({"command": "uvx", "url": "https://d.example"}, "stdio", True),
        ({"type": "http", "command": "uvx", "url": "https://d.example"}, "http", False),
        ({"type": None, "url": "https://d.example"}, "http", True),
        ({"httpUrl": "https://d.example"}, "http", True),
        ({"uri": "https://d.example", "serverUrl": "https://d.example"}, "http", True),
        ({"type": "remote", "url": "https://d.example"}, "http", True),
        ({"type": "local", "cmd": "uvx"}, "stdio", False),
        ({"cmd": "uvx"}, "stdio", True),
    ],
)
def test_transport(tmp_path: Path, entry: dict[str, Any], transport: str, guessed: bool) -> None:
    """Every spelling of `type` is known, and without one it is guessed from `command` and `url`."""
    spec = server_of(tmp_path, entry)
    assert (spec.transport, spec.transport_guessed, spec.problem) == (transport, guessed, None)
    assert (spec.url, spec.command) == (("https://d.example", None) if transport != "stdio" else (None, "uvx"))


def test_words_of_other_clients_for_our_keys(tmp_path: Path) -> None:
    """Where they can mean nothing else, they are read; a key of our own wins."""
    entry = {"cmd": "uvx", "arguments": ["x"], "envs": {"A": 1}, "working_directory": "/w"}
    spec = server_of(tmp_path, entry)
    assert (spec.command, spec.args, spec.env, spec.cwd) == ("uvx", ("x",), {"A": "1"}, "/w")
    assert server_of(tmp_path, {"command": "uvx", "environment": {"B": "2"}}).env == {"B": "2"}
    assert server_of(tmp_path, {"command": "uvx", "cmd": "other"}).command == "uvx"
    assert server_of(tmp_path, {"uri": "https://d.example", "http_headers": {"X": "1"}}).headers == {"X": "1"}


def test_url_wins_over_server_url(tmp_path: Path) -> None:
    """Where a client wrote both, `url` is the address."""
    assert (
        server_of(tmp_path, {"url": "https://a.example", "serverUrl": "https://b.example"}).url == "https://a.example"
    )


def test_cwd_starts_where_the_file_really_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A config given by a relative path, or linked from elsewhere, means the folder in which it is kept."""
    settings_of(tmp_path, {"mcpServers": {"docs": {"command": "uvx", "cwd": "sub"}}})
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "config.json"
    link.symlink_to(tmp_path / "pegboard.json")
    monkeypatch.chdir(tmp_path)
    found = {read_settings(path, {}).servers["docs"].cwd for path in (Path("pegboard.json"), link)}
    assert found == {str(tmp_path.resolve() / "sub")}


@pytest.mark.parametrize(
    ("entry", "missing"),
    [
        ({}, "command or url"),
        ({"enabled": True}, "url"),
        ({"type": "http"}, "url"),
        ({"type": "sse", "command": "uvx"}, "url"),
        ({"type": "http", "url": None}, "url"),
        ({"type": "stdio"}, "command"),
        ({"type": "stdio", "url": "https://d.example"}, "command"),
        ({"command": "  "}, "command"),
        ({"args": ["x"]}, "command"),
    ],
)
def test_an_entry_without_an_address_is_only_its_own_problem(
    tmp_path: Path, entry: dict[str, Any], missing: str
) -> None:
    """An entry that does not say where its server is says so in `problem`, and the other servers go on."""
    servers = settings_of(tmp_path, {"mcpServers": {"GitHub-Docs": entry, "git": {"command": "uvx"}}}).servers
    problem = servers["github_docs"].problem or ""
    assert problem.endswith(f'Invalid MCP server config for "github_docs": missing {missing}')
    assert (servers["git"].problem, servers["git"].command) == (None, "uvx")


def test_an_entry_without_an_address_still_has_its_transport(tmp_path: Path) -> None:
    """What an entry does say is kept although it does not say enough."""
    spec = server_of(tmp_path, {"type": "sse", "ttl": 7})
    assert (spec.transport, spec.transport_guessed, spec.ttl) == ("sse", False, 7)


def test_numbers_and_flags_in_env_and_headers_become_texts(tmp_path: Path) -> None:
    """Numbers and booleans in `env` and `headers` are taken as their text, and a null as left out."""
    values = {"A": 8080, "B": True, "C": False, "D": 1.5, "E": "x", "F": None}
    texts = {"A": "8080", "B": "true", "C": "false", "D": "1.5", "E": "x"}
    assert server_of(tmp_path, {"command": "uvx", "env": values}).env == texts
    assert server_of(tmp_path, {"url": "https://d.example", "headers": values}).headers == texts


def test_a_number_of_any_size_becomes_its_own_text(tmp_path: Path) -> None:
    """A whole number too long for Python's own conversion is still taken digit for digit."""
    digits = "1234567890" * 500
    spec = settings_of(tmp_path, f'{{"mcpServers": {{"a": {{"command": "a", "env": {{"N": {digits}}}}}}}}}').servers[
        "a"
    ]
    assert spec.env == {"N": digits}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("uvx", "uvx"),
        ("./server.sh", "./server.sh"),
        ("../bin/server", "../bin/server"),
        ("/opt/server", "/opt/server"),
        ("~/bin/server", "/home/ada/bin/server"),
        ("~", "/home/ada"),
        ("~nobody-of-this-name/server", "~nobody-of-this-name/server"),
        ("~\0", "~\0"),
    ],
)
def test_command_is_taken_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, meant: str) -> None:
    """Of a command only a leading `~` is expanded: `./x` must not become `x`, which is looked for on PATH."""
    monkeypatch.setenv("HOME", "/home/ada")
    spec = server_of(tmp_path, {"command": written})
    assert (spec.command, spec.problem) == (meant, None)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("/srv", "/srv"),
        ("~/src", "/home/ada/src"),
        ("sub/folder", "{folder}/sub/folder"),
        (".", "{folder}"),
        ("~nobody-of-this-name/src", "{folder}/~nobody-of-this-name/src"),
    ],
)
def test_cwd_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, meant: str) -> None:
    """`cwd` is expanded, and a relative one starts at the config file's folder, wherever Pegboard was started."""
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.chdir("/")
    assert server_of(tmp_path, {"command": "uvx", "cwd": written}).cwd == meant.format(folder=tmp_path.resolve())


@pytest.mark.parametrize(
    "entry",
    [
        {"autoApprove": ["x"], "alwaysAllow": ["y"], "disabledTools": ["z"], "trust": True, "gallery": "https://x"},
        {"dev": {"watch": "**/*.ts"}, "timeoutMs": "soon", "oauth": {"a": [1]}},
        {"tools": "*"},
        {"tools": {"search": True}},
    ],
)
def test_other_clients_keys_are_tolerated(tmp_path: Path, entry: dict[str, Any]) -> None:
    """Keys that only other clients know change nothing and are not worth a remark."""
    plain = settings_of(tmp_path, {"mcpServers": {"git": {"command": "uvx"}}})
    assert settings_of(tmp_path, {"mcpServers": {"git": {"command": "uvx", **entry}}}) == plain


# One server's entry: how it is treated


@pytest.mark.scenario("registry: Connection: five seconds unless the config says otherwise, enforced")
@pytest.mark.parametrize(
    ("key", "attribute", "default"),
    [
        ("timeout", "timeout", 300.0),
        ("connectTimeout", "connect_timeout", 5.0),
        ("startTimeout", "start_timeout", 60.0),
        ("idleTimeout", "idle_timeout", 600.0),
        ("ttl", "ttl", 300.0),
    ],
)
def test_times(tmp_path: Path, key: str, attribute: str, default: float) -> None:
    """Every time has its default, takes whole and broken seconds, and counts as left out when null."""
    assert getattr(server_of(tmp_path, {"command": "uvx"}), attribute) == default
    assert getattr(server_of(tmp_path, {"command": "uvx", key: 7}), attribute) == 7.0
    assert getattr(server_of(tmp_path, {"command": "uvx", key: 0.25}), attribute) == 0.25
    assert getattr(server_of(tmp_path, {"command": "uvx", key: 10_000_000}), attribute) == 10_000_000
    assert getattr(server_of(tmp_path, {"command": "uvx", key: None}), attribute) == default


def test_an_idle_timeout_of_zero_means_never(tmp_path: Path) -> None:
    """Zero is a meaningful `idleTimeout`."""
    assert server_of(tmp_path, {"command": "uvx", "idleTimeout": 0}).idle_timeout == 0


@pytest.mark.parametrize(
    ("entry", "enabled"),
    [
        ({}, True),
        ({"enabled": True}, True),
        ({"enabled": False}, False),
        ({"disabled": True}, False),
        ({"disabled": False}, True),
        ({"disabled": None}, True),
    ],
)
def test_enabled_and_disabled(tmp_path: Path, entry: dict[str, Any], enabled: bool) -> None:
    """A server is on unless `enabled` is false or, as other clients write it, `disabled` is true."""
    assert server_of(tmp_path, {"command": "uvx", **entry}).enabled is enabled


@pytest.mark.parametrize(("entry", "prefix"), [({}, True), ({"prefix": True}, True), ({"prefix": False}, False)])
def test_prefix(tmp_path: Path, entry: dict[str, Any], prefix: bool) -> None:
    """One server may go without a prefix."""
    assert server_of(tmp_path, {"command": "uvx", **entry}).prefix is prefix


@pytest.mark.parametrize(
    ("entry", "instance"),
    [({}, "shared"), ({"instance": "shared"}, "shared"), ({"instance": "session"}, "session")],
)
def test_instance(tmp_path: Path, entry: dict[str, Any], instance: str) -> None:
    """A server is shared unless each session shall have its own."""
    assert server_of(tmp_path, {"command": "uvx", **entry}).instance == instance


@pytest.mark.parametrize(
    ("tools", "permitted"),
    [
        (None, {"search_docs", "search_delete", "read", "Read"}),
        ({}, {"search_docs", "search_delete", "read", "Read"}),
        ({"allow": ["search_*"]}, {"search_docs", "search_delete"}),
        ({"deny": ["*_delete"]}, {"search_docs", "read", "Read"}),
        ({"allow": ["search_*"], "deny": ["*_delete"]}, {"search_docs"}),
        ({"allow": ["read"], "deny": ["read"]}, set[str]()),
        (["search_docs", "read"], {"search_docs", "read"}),
        (["*"], {"search_docs", "search_delete", "read", "Read"}),
        ({"allow": [], "deny": None}, {"search_docs", "search_delete", "read", "Read"}),
    ],
)
def test_allow_and_deny(tmp_path: Path, tools: object, permitted: set[str]) -> None:
    """`deny` beats `allow`, `allow` alone shuts out the rest, a plain list allows, and letter case counts."""
    spec = server_of(tmp_path, {"command": "uvx", "tools": tools})
    assert {tool for tool in ("search_docs", "search_delete", "read", "Read") if spec.permits(tool)} == permitted


def test_keywords(tmp_path: Path) -> None:
    """Keywords are kept by tool."""
    spec = server_of(tmp_path, {"command": "uvx", "keywords": {"search_docs": ["manual", "handbook"], "read": []}})
    assert spec.keywords == {"search_docs": ("manual", "handbook"), "read": ()}


# Settings of our own


@pytest.mark.parametrize(
    ("key", "value", "attribute", "meant"),
    [
        ("expose", "all", "expose", "all"),
        ("expose", "search", "expose", "search"),
        ("pinned", [], "pinned", ()),
        ("pinned", ["a", "b"], "pinned", ("a", "b")),
        ("toolsets", [], "toolsets", ()),
        ("toolsets", ["memory"], "toolsets", ("memory",)),
        ("renamed", {"a": "b"}, "renamed", {"a": "b"}),
        ("maxNameLength", 16, "max_name_length", 16),
        ("maxNameLength", 128, "max_name_length", 128),
        ("storage", "postgresql://db/pegboard", "storage", "postgresql://db/pegboard"),
        ("storage", None, "storage", "sqlite"),
    ],
)
def test_own_settings(tmp_path: Path, key: str, value: object, attribute: str, meant: object) -> None:
    """Each setting under "pegboard" arrives where the board looks for it, and changes no other."""
    settings = settings_of(tmp_path, {"pegboard": {key: value}})
    changed: dict[str, Any] = {attribute: meant}
    assert settings == Settings(path=tmp_path / "pegboard.json", **changed)


@pytest.mark.parametrize(
    ("key", "remark"),
    [
        ("exposed", "pegboard.exposed is not a setting; did you mean expose?"),
        ("pined", "pegboard.pined is not a setting; did you mean pinned?"),
        ("max_name_length", "pegboard.max_name_length is not a setting; did you mean maxNameLength?"),
        ("xyzzy", "pegboard.xyzzy is not a setting"),
    ],
)
def test_unknown_own_settings_are_remarked(tmp_path: Path, key: str, remark: str) -> None:
    """A misspelt setting of ours stops nothing, but is told, with the nearest real one."""
    settings = settings_of(tmp_path, {"pegboard": {key: 1, "storage": "sqlite"}})
    assert settings.remarks == (remark,)
    assert settings.servers == {}


def test_settings_beside_the_section_are_remarked(tmp_path: Path) -> None:
    """A setting of ours at the top level does nothing, and is told; what other clients have there is none of ours."""
    theirs = {
        "$schema": "x",
        "inputs": [],
        "mcp": {},
        "globalShortcut": "x",
        "tools": {"sandbox": True},
        "search": None,
    }
    settings = settings_of(tmp_path, {"mcpServers": {}, **theirs, "expose": "all", "audit": {"keep": "1d"}})
    wanted = tuple(
        f'"{key}" stands outside of "pegboard", where nothing reads it: move it there' for key in ("expose", "audit")
    )
    assert (settings.remarks, settings.own_remarks) == (wanted, wanted)
    both = settings_of(tmp_path, {"mcpServers": {"A-B": {"command": "x"}}, "tools": {"deny": ["x"]}})
    assert [remark[:7] for remark in both.own_remarks] == ['"tools"']
    assert len(both.remarks) == 2


@pytest.mark.parametrize("auth", [{"required": True}, {"required": "remote"}, {"rules": []}, {"issuers": []}])
def test_a_door_that_is_closed_in_the_wrong_place_opens_nothing(tmp_path: Path, auth: dict[str, Any]) -> None:
    """A file that asks for tokens where nobody reads it is refused: it would be a gateway that everybody may use."""
    with pytest.raises(ConfigError, match=r'pegboard.json:1:\d+: auth stands outside of "pegboard"'):
        settings_of(tmp_path, {"mcpServers": {}, "auth": auth})


@pytest.mark.parametrize("auth", [{"required": False}, {}, {"provider": "x"}, "oauth"])
def test_what_asks_for_no_door_stops_nothing(tmp_path: Path, auth: object) -> None:
    """A key `auth` that says nothing of ours may be another program's: it is told, and the file is used."""
    settings = settings_of(tmp_path, {"mcpServers": {}, "auth": auth})
    assert [remark[:6] for remark in settings.own_remarks] == ['"auth"']


# Names


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("GitHub-Docs", "github_docs"),
        ("my server", "my_server"),
        ("a__b", "a_b"),
        ("_x_", "x"),
        ("@scope/pkg.name", "scope_pkg_name"),
        ("Übersicht", "ubersicht"),
        ("日本語", "server_77710aed"),
    ],
)
def test_names_are_folded_with_a_remark(tmp_path: Path, given: str, name: str) -> None:
    """A name that is not snake_case is folded to the same one on every start, and a remark says so."""
    settings = settings_of(tmp_path, {"mcpServers": {given: {"command": "uvx"}}})
    assert {key: (spec.name, spec.given_name) for key, spec in settings.servers.items()} == {name: (name, given)}
    assert settings.remarks == (f'server "{given}" is called "{name}" here',)


def test_snake_case_names_need_no_remark(tmp_path: Path) -> None:
    """A name that is fine is kept without a word."""
    assert settings_of(tmp_path, {"mcpServers": {"github_docs2": {"command": "uvx"}}}).remarks == ()


@pytest.mark.parametrize(
    "config",
    [
        {"mcpServers": {"GitHub-Docs": {"command": "a"}, "github_docs": {"command": "b"}}},
        {"mcpServers": {"github_docs": {"command": "a"}, "GitHub-Docs": {"command": "b"}}},
        {"mcpServers": {"GitHub-Docs": {"command": "a"}}, "servers": {"github_docs": {"command": "b"}}},
        {"mcpServers": {"GitHub-Docs": {"command": "a"}, "github_docs": {"command": "b", "enabled": False}}},
    ],
)
def test_two_names_that_fold_to_one_are_an_error(tmp_path: Path, config: dict[str, Any]) -> None:
    """Two servers that would share a name are an error that names both, across sections and switches too."""
    with pytest.raises(ConfigError) as caught:
        settings_of(tmp_path, config)
    message = str(caught.value)
    assert "GitHub-Docs" in message
    assert "github_docs" in message
    assert message.startswith(f"{tmp_path / 'pegboard.json'}:1:")


def test_names_without_ascii_letters_do_not_meet(tmp_path: Path) -> None:
    """Two names in a script of their own get two names here."""
    settings = settings_of(tmp_path, {"mcpServers": {"日本": {"command": "a"}, "中国": {"command": "b"}}})
    assert [spec.given_name for spec in settings.servers.values()] == ["日本", "中国"]


def test_only_one_server_goes_without_a_prefix(tmp_path: Path) -> None:
    """A second `prefix: false` is an error that names both servers, in whichever section they are."""
    bare = {"command": "uvx", "prefix": False}
    config = {"mcpServers": {"ape": bare, "bee": {"command": "uvx"}}, "servers": {"cat": bare}}
    with pytest.raises(ConfigError, match=r'pegboard\.json:1:1: .*"prefix": false for ape, cat'):
        settings_of(tmp_path, config)
