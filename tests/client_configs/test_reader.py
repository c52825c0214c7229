"""What each client's format becomes: golden cases, one for every field, unit and variable that clients write."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from pegboard.client_configs.links import cursor_link, goose_link, kiro_link, lm_studio_link, vscode_link
from pegboard.client_configs.reader import no_servers, read_text
from pegboard.client_configs.reading import ConfigReading, ForeignServer, TextOrigin
from pegboard.client_configs.table import find_client

PASTED = TextOrigin("the text", "the text")
TIME = {"command": "uvx", "args": ["mcp-server-time"]}


def read(text: str | dict[str, Any], client: str | None = None, **origin: Any) -> ConfigReading:
    content = text if isinstance(text, str) else json.dumps(text)
    known = None if client is None else find_client(client)
    return read_text(content, TextOrigin("x", "x", known, **origin))


def one(text: str | dict[str, Any], client: str | None = None, **origin: Any) -> ForeignServer:
    reading = read(text, client, **origin)
    assert reading.unreadable == ()
    (server,) = reading.servers
    return server


def entry(text: str | dict[str, Any], client: str | None = None, **origin: Any) -> dict[str, Any]:
    return dict(one(text, client, **origin).entry)


@pytest.mark.scenario("first hour: Any client's format is read")
@pytest.mark.parametrize(
    ("client", "text", "meant"),
    [
        ("claude-desktop", {"mcpServers": {"time": TIME}}, TIME),
        (
            "claude-code",
            {"mcpServers": {"time": {"type": "stdio", **TIME, "env": {"A": "${B:-c}"}, "timeout": 30000}}},
            {**TIME, "env": {"A": "${B:-c}"}, "timeout": 30},
        ),
        (
            "claude-code",
            {
                "mcpServers": {
                    "docs": {"type": "streamable-http", "url": "https://d.example/mcp", "headers": {"X": "1"}}
                }
            },
            {"type": "http", "url": "https://d.example/mcp", "headers": {"X": "1"}},
        ),
        (
            "vscode",
            {"servers": {"time": {"type": "stdio", **TIME, "cwd": "${userHome}", "env": {"T": "${env:T}", "N": None}}}},
            {**TIME, "env": {"T": "${env:T}"}, "cwd": "${userHome}"},
        ),
        (
            "cursor",
            '// mine\n{"mcpServers": {"time": {"command": "uvx", "args": ["a", 1, true],},},}',
            {"command": "uvx", "args": ["a", "1", "true"]},
        ),
        ("windsurf", {"mcpServers": {"d": {"serverUrl": "https://d.example"}}}, {"url": "https://d.example"}),
        (
            "windsurf",
            {"mcpServers": {"t": {**TIME, "disabled": True, "disabledTools": ["drop"]}}},
            {**TIME, "enabled": False, "tools": {"deny": ["drop"]}},
        ),
        (
            "zed",
            {"theme": "x", "context_servers": {"t": {**TIME, "timeout": 60, "enabled": True}}},
            {**TIME, "timeout": 60},
        ),
        (
            "zed",
            {"context_servers": {"t": {"command": {"path": "uvx", "args": ["x"], "env": {"A": "1"}}}}},
            {"command": "uvx", "args": ["x"], "env": {"A": "1"}},
        ),
        (
            "cline",
            {"mcpServers": {"d": {"transport": {"type": "streamableHttp", "url": "https://d.example"}, "timeout": 90}}},
            {"type": "http", "url": "https://d.example", "timeout": 90},
        ),
        (
            "roo",
            {"mcpServers": {"d": {"type": "streamable-http", "url": "https://d.example", "timeout": 5}}},
            {"type": "http", "url": "https://d.example", "timeout": 5},
        ),
        (
            "continue",
            (
                "name: mine\nmcpServers:\n  - name: d\n    type: streamable-http\n    url: https://d.example\n"
                "    connectionTimeout: 2500\n    requestOptions:\n      headers:\n        K: ${{ secrets.KEY }}\n"
            ),
            {"type": "http", "url": "https://d.example", "headers": {"K": "${KEY}"}, "connectTimeout": 2.5},
        ),
        (
            "continue",
            "mcpServers:\n- name: t\n  command: uvx\n  args:\n  - mcp-server-time\n  env:\n    A: 'true'\n",
            {**TIME, "env": {"A": "true"}},
        ),
        (
            "gemini",
            {
                "mcpServers": {
                    "d": {"httpUrl": "https://d.example", "url": "https://d.example", "headers": {"K": "$KEY"}}
                }
            },
            {"type": "http", "url": "https://d.example", "headers": {"K": "${KEY}"}},
        ),
        (
            "gemini",
            {
                "mcpServers": {
                    "t": {
                        **TIME,
                        "env": {"A": "$A-${B}-%C%-\\$D"},
                        "timeout": 600000,
                        "includeTools": ["a"],
                        "excludeTools": ["b"],
                    }
                }
            },
            {**TIME, "env": {"A": "${A}-${B}-${C}-\\$D"}, "timeout": 600, "tools": {"allow": ["a"], "deny": ["b"]}},
        ),
        (
            "codex",
            (
                '[mcp_servers.t]\ncommand = "uvx"\nargs = ["mcp-server-time"]\nenv_vars = ["A", {name = "B"}]\n'
                "startup_timeout_sec = 20\ntool_timeout_sec = 90\nenabled = false\n"
                'enabled_tools = ["x"]\ndisabled_tools = ["y"]\n[mcp_servers.t.env]\nC = "1"\n'
            ),
            {
                **TIME,
                "env": {"C": "1", "A": "${A}", "B": "${B}"},
                "enabled": False,
                "timeout": 90,
                "startTimeout": 20,
                "tools": {"allow": ["x"], "deny": ["y"]},
            },
        ),
        (
            "codex",
            (
                '[mcp_servers.d]\nurl = "https://d.example"\nbearer_token_env_var = "T"\nstartup_timeout_ms = 1500\n'
                'http_headers = {X = "1"}\nenv_http_headers = {Y = "V"}\n'
            ),
            {
                "url": "https://d.example",
                "headers": {"X": "1", "Y": "${V}", "Authorization": "Bearer ${T}"},
                "connectTimeout": 1.5,
            },
        ),
        (
            "goose",
            (
                "extensions:\n  t:\n    type: stdio\n    cmd: uvx\n    args: [mcp-server-time]\n    envs: {A: '1'}\n"
                "    env_keys: [B]\n    timeout: 300\n    enabled: true\n    available_tools: [x]\n"
            ),
            {**TIME, "env": {"A": "1", "B": "${B}"}, "timeout": 300, "tools": {"allow": ["x"]}},
        ),
        (
            "goose",
            "extensions:\n  d:\n    type: streamable_http\n    uri: https://d.example\n    headers: {K: v}\n",
            {"type": "http", "url": "https://d.example", "headers": {"K": "v"}},
        ),
        ("lm-studio", {"mcpServers": {"d": {"url": "https://d.example"}}}, {"url": "https://d.example"}),
        ("kiro", {"mcpServers": {"t": {**TIME, "timeout": 60000}}}, {**TIME, "timeout": 60}),
        ("amazon-q", {"mcpServers": {"t": {**TIME, "timeout": 120000}}}, {**TIME, "timeout": 120}),
        (
            "opencode",
            {
                "mcp": {
                    "t": {
                        "type": "local",
                        "command": ["uvx", "mcp-server-time"],
                        "environment": {"A": "{env:B}"},
                        "timeout": 7000,
                    }
                }
            },
            {**TIME, "env": {"A": "${B}"}, "startTimeout": 7},
        ),
        (
            "opencode",
            {"mcp": {"servers": {"d": {"type": "remote", "url": "https://d.example", "enabled": False}}}},
            {"url": "https://d.example", "enabled": False},
        ),
        ("warp", {"mcpServers": {"t": {**TIME, "working_directory": "/w"}}}, {**TIME, "cwd": "/w"}),
        (
            "copilot",
            {"mcpServers": {"t": {"type": "local", **TIME, "env": {"A": "$A"}, "tools": ["*"], "timeout": 1000}}},
            {**TIME, "env": {"A": "${A}"}, "timeout": 1},
        ),
        ("copilot", {"mcpServers": {"t": {**TIME, "tools": ["x"]}}}, {**TIME, "tools": {"allow": ["x"]}}),
        ("amp", {"amp.mcpServers": {"t": TIME}}, TIME),
        ("kilo", {"mcp": {"d": {"type": "remote", "url": "https://d.example"}}}, {"url": "https://d.example"}),
        (
            "crush",
            {"mcp": {"d": {"type": "sse", "url": "https://d.example"}}},
            {"type": "sse", "url": "https://d.example"},
        ),
        ("junie", {"mcpServers": {"t": TIME}}, TIME),
        ("qwen", {"mcpServers": {"t": TIME}}, TIME),
        ("copilot-jetbrains", {"servers": {"t": TIME}}, TIME),
    ],
)
def test_a_clients_entry_becomes_ours(client: str, text: str | dict[str, Any], meant: dict[str, Any]) -> None:
    """Every field, unit and variable as that client means them."""
    suffix = ".yaml" if isinstance(text, str) and ":\n" in text and "{" not in text.partition("\n")[0] else ""
    assert entry(text, client, suffix=suffix) == meant


@pytest.mark.scenario("first hour: Any client's format is read")
@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"time": %s}}',
        '{"mcpServers": {"mcpServers": {"time": %s}}}',
        '{"servers": {"time": %s}, "inputs": []}',
        '{"mcp": {"servers": {"time": %s}}}',
        '{"mcp": {"time": %s}}',
        '{"mcp.servers": {"time": %s}}',
        '{"settings": {"mcp": {"servers": {"time": %s}}}}',
        '{"customizations": {"vscode": {"mcp": {"servers": {"time": %s}}}}}',
        '{"context_servers": {"time": %s}}',
        '{"time": %s}',
        '"time": %s',
        '\n  // a part\n  "time": %s,\n',
        '"mcpServers": {"time": %s}',
        '```json\n{"time": %s}\n```',
        '\ufeff{"mcpServers":\r\n {"time": %s}}',
        '[{"name": "time", "command": "uvx", "args": ["mcp-server-time"]}]',
        '{"name": "time", "command": "uvx", "args": ["mcp-server-time"]}',
        '{"command": "uvx", "args": ["mcp-server-time"]}',
        '{"command": "uvx mcp-server-time"}',
        "uvx mcp-server-time",
        "$ uvx \\\n  mcp-server-time",
        "claude mcp add time -- uvx mcp-server-time",
        "claude mcp add -s user time uvx mcp-server-time",
        "codex mcp add time -- uvx mcp-server-time",
        "gemini mcp add time uvx mcp-server-time",
        "pegboard add time -- uvx mcp-server-time",
        """claude mcp add-json time '{"command": "uvx", "args": ["mcp-server-time"]}'""",
        """code --add-mcp '{"name": "time", "command": "uvx", "args": ["mcp-server-time"]}'""",
        '[mcp_servers.time]\ncommand = "uvx"\nargs = ["mcp-server-time"]',
        'model = "x"\n\n[mcp_servers."time"]\ncommand = "uvx"\nargs = ["mcp-server-time"]',
        "mcpServers:\n  time:\n    command: uvx\n    args: [mcp-server-time]\n",
        "extensions:\n  time:\n    cmd: uvx\n    args:\n      - mcp-server-time\n",
    ],
)
def test_whatever_is_pasted_is_read(text: str) -> None:
    """With or without the braces, the section or the name around it."""
    server = one(text.replace("%s", json.dumps(TIME)))
    assert (server.name, dict(server.entry)) == ("time", TIME)


LINKED = {"command": "uvx", "args": ["mcp-server-time"], "env": {"A": "ü?&+/"}}


@pytest.mark.parametrize(
    "link",
    [
        cursor_link("time", LINKED),
        lm_studio_link("time", LINKED),
        kiro_link("time", LINKED),
        vscode_link("vscode")("time", LINKED),
        vscode_link("vscode-insiders")("time", LINKED),
        "https://cursor.com/en/install-mcp?name=time&config=" + base64.b64encode(json.dumps(LINKED).encode()).decode(),
        f"https://insiders.vscode.dev/redirect/mcp/install?name=time&config={quote(json.dumps(LINKED))}",
        "https://vscode.dev/redirect?url=" + quote(vscode_link("vscode")("time", LINKED)),
    ],
)
def test_a_one_click_link_is_read(link: str) -> None:
    """As the client that it is for would read it."""
    server = one(link)
    assert (server.name, dict(server.entry)) == ("time", LINKED)


def test_a_link_of_goose_is_read() -> None:
    """A command with each argument as a field, the names of its variables, or an address."""
    assert entry("goose://extension?cmd=uvx&arg=mcp-server-time&arg=-v&id=time&name=time") == {
        "command": "uvx",
        "args": ["mcp-server-time", "-v"],
    }
    assert entry(goose_link("d", {"type": "streamable_http", "uri": "https://d.example"})) == {
        "type": "http",
        "url": "https://d.example",
    }
    assert entry("goose://extension?cmd=uvx&arg=x&env=KEY%3DThe%20key&name=t")["env"] == {"KEY": "${KEY}"}


def test_an_address_and_the_options_of_other_programs_are_read() -> None:
    """Headers, variables and transports of `… mcp add`; what is about that program is named."""
    assert one("https://mcp.linear.example/sse").name == "linear"
    line = 'claude mcp add --transport sse -s user docs https://d.example -H "X-A: b" --header "Y: z"'
    server = one(line)
    assert (server.name, dict(server.entry)) == (
        "docs",
        {"type": "sse", "url": "https://d.example", "headers": {"X-A": "b", "Y": "z"}},
    )
    assert [each.key for each in server.left_out] == ["-s"]
    assert entry("codex mcp add d --url https://d.example") == {"url": "https://d.example"}
    assert entry("codex mcp add d --env A=1 --env B -- npx -y x --env C=2") == {
        "command": "npx",
        "args": ["-y", "x", "--env", "C=2"],
        "env": {"A": "1", "B": "${B}"},
    }
    assert entry("A=1 B='x y' npx -y x")["env"] == {"A": "1", "B": "x y"}


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "it is empty"),
        ('{\n "mcpServers": {\n  "a": {"command" "x"}}}', 3, "not JSON: expected ':' after this key"),
        ('[mcp_servers.a]\ncommand = "x"\nargs = [', 3, "not TOML"),
        ("mcpServers:\n  - name: a\n   command: x\n", 3, "not YAML"),
        ("mcpServers:\n  a: &x\n    command: y\n  b: *x\n", 2, "anchors and aliases"),
        ("mcpServers:\n  a:\n    command: y\n  a:\n    command: z\n", 4, 'the key "a" stands twice'),
        ("one line\nand another", 1, "neither JSON, TOML, YAML nor one command"),
        ("npx 'open", 1, "it has a quote that is never closed"),
        ("mcp.linear.app/mcp", 1, "is it an address? Put https:// before it: https://mcp.linear.app/mcp"),
        ("localhost:3000", 1, "is it an address? Put https:// before it: https://localhost:3000"),
        ("ftp://example.com/mcp", 1, "ftp: is no address of a server: that begins with https:// or http://"),
        ("https://github.com/github/github-mcp-server", 1, "this is a web page: paste the snippet that stands there"),
        ("cursor://anysphere.cursor-deeplink/mcp/install?name=x&config=%%%", 1, "neither JSON nor base64"),
        ("vscode:mcp/install?nothing", 1, "not a JSON object"),
        ('{"name": "io.x/y", "packages": []}', 1, "pegboard add --from"),
        ("{}", 1, "there are no servers in it"),
        ('{"editor.fontSize": 12}', 1, "there are no servers in it"),
        ("[" * 100_000, 1, "not JSON"),
        ("{" * 100_000, 1, "not JSON"),
    ],
)
def test_a_text_that_cannot_be_read_says_where_and_why(text: str, line: int, reason: str) -> None:
    """One message with a line, and no exception."""
    reading = no_servers(read(text), PASTED)
    assert reading.servers == ()
    (problem,) = reading.unreadable
    assert problem.place.endswith(f":{line}")
    assert reason in problem.reason


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ({"comand": "uvx"}, '"comand" is not a key: did you mean "command"?'),
        ({"command": "uvx", "agrs": []}, '"agrs" is not a key: did you mean "args"?'),
        ({"args": []}, "it has neither a command nor a url"),
        ({"command": ""}, "its command is not a text"),
        ({"command": [1]}, "its command is not a text"),
        ({"command": "x", "args": [{}]}, "its args are not a list of texts"),
        ({"command": "x", "args": "'open"}, "it has a quote that is never closed"),
        ({"command": "x", "args": ["y"] * 1001}, "its args are 1,001, 1,000 are the most"),
        ({"command": "x", "env": {f"V{n}": "" for n in range(1001)}}, "its env are 1,001, 1,000 are the most"),
        ({"url": "http://x", "headers": {"A": "y" * 140_000}}, "it has more than 131,072 characters"),
        ({"url": 5}, "its url is not a text"),
        ({"type": "ws", "url": "ws://x"}, 'type "ws" is not known'),
        ({"type": 5, "url": "http://x"}, "its type is not a text"),
        ("uvx", "it is not an object"),
        (None, "it is not an object"),
    ],
)
def test_an_entry_that_cannot_be_used_says_so_and_the_others_go_on(raw: Any, reason: str) -> None:
    """With its own line."""
    text = json.dumps({"mcpServers": {"good": TIME, "bad": raw}}, indent=1)
    reading = read(text)
    assert [server.name for server in reading.servers] == ["good"]
    (problem,) = reading.unreadable
    line = next(number for number, line in enumerate(text.splitlines(), 1) if '"bad"' in line)
    assert (problem.name, problem.place) == ("bad", f"x:{line}")
    assert reason in problem.reason


def test_a_link_that_leads_to_links_without_end_is_refused() -> None:
    """One redirect is followed, which VS Code's own badges have."""
    reading = read("https://vscode.dev/redirect?url=" * 2000 + "x")
    assert [each.reason for each in reading.unreadable] == [
        "the link leads to another redirect: paste the link that it ends at"
    ]


def test_places_in_toml_and_yaml_are_those_of_the_entry() -> None:
    """Also where the name is quoted, or the table stands below another."""
    toml = 'model = "m"\n[mcp_servers.a]\ncommand = 1\n\n[mcp_servers."b c"]\nargs = []\n[mcp_servers.a.env]\nX = "1"\n'
    assert [str(each) for each in read(toml).unreadable] == [
        "x:2: a: its command is not a text",
        "x:5: b c: it has neither a command nor a url",
    ]
    yaml = "mcpServers:\n  - name: a\n    command: x\n\n  - name: b\n    args: []\nother: 1\n"
    assert [each.place for each in read(yaml).unreadable] == ["x:5"]


def test_what_is_built_into_a_client_is_skipped() -> None:
    """It is no server, and no mistake either."""
    reading = read("extensions:\n  developer:\n    type: builtin\n    enabled: true\n", "goose", suffix=".yaml")
    assert [(each.name, each.is_skipped) for each in reading.unreadable] == [("developer", True)]


SIGN_IN = {"clientId": "me", "clientSecret": "${SECRET}", "scopes": ["a", "b"]}
OAUTH_OF_CLIENTS: dict[str, tuple[str, str | dict[str, Any], Any]] = {
    "claude-code": (
        ".json",
        {"mcpServers": {"t": {"type": "http", "url": "https://d.example", "oauth": {**SIGN_IN, "callbackPort": 8090}}}},
        {**SIGN_IN, "callbackPort": 8090},
    ),
    "vscode": (
        ".json",
        {"servers": {"t": {"type": "http", "url": "https://d.example", "oauth": {"clientId": "me"}}}},
        {"clientId": "me"},
    ),
    "cursor": (
        ".json",
        {
            "mcpServers": {
                "t": {
                    "url": "https://d.example",
                    "auth": {"CLIENT_ID": "me", "CLIENT_SECRET": "${env:SECRET}", "scopes": ["a", "b"]},
                }
            }
        },
        {**SIGN_IN, "clientSecret": "${env:SECRET}"},
    ),
    "gemini": (
        ".json",
        {
            "mcpServers": {
                "t": {
                    "httpUrl": "https://d.example",
                    "oauth": {
                        **SIGN_IN,
                        "enabled": True,
                        "authorizationUrl": "https://as.example/authorize",
                        "tokenUrl": "https://as.example/token",
                        "redirectUri": "http://localhost:7777/oauth/callback",
                    },
                }
            }
        },
        {
            **SIGN_IN,
            "authorizationEndpoint": "https://as.example/authorize",
            "tokenEndpoint": "https://as.example/token",
            "redirectUri": "http://localhost:7777/oauth/callback",
        },
    ),
    "opencode": (
        ".json",
        {
            "mcp": {
                "t": {
                    "type": "remote",
                    "url": "https://d.example",
                    "oauth": {"clientId": "me", "clientSecret": "{env:SECRET}", "scope": "a b"},
                }
            }
        },
        {"clientId": "me", "clientSecret": "${SECRET}", "scopes": "a b"},
    ),
    "codex": (
        ".toml",
        '[mcp_servers.t]\nurl = "https://d.example"\nscopes = ["a", "b"]\noauth_resource = "https://d.example"\n',
        {"scopes": ["a", "b"], "resource": "https://d.example"},
    ),
    "zed": (
        ".json",
        {"context_servers": {"t": {"url": "https://d.example", "oauth": {"client_id": "me"}}}},
        {"clientId": "me"},
    ),
}


@pytest.mark.parametrize("client", OAUTH_OF_CLIENTS)
def test_how_to_sign_in_is_carried_over(client: str) -> None:
    """The `oauth` section of each client that has one, in Pegboard's words; secrets stay variables."""
    suffix, text, meant = OAUTH_OF_CLIENTS[client]
    found = one(text, client, suffix=suffix)
    assert (found.entry["url"], found.entry["oauth"]) == ("https://d.example", meant)
    assert found.left_out == ()


def test_a_sign_in_that_is_switched_off_stays_off() -> None:
    """OpenCode says so with `false`."""
    raw = {"mcp": {"t": {"type": "remote", "url": "https://d.example", "oauth": False}}}
    assert entry(raw, "opencode")["oauth"] is False


def test_what_is_left_out_is_named_with_its_reason() -> None:
    """Approvals, files of variables, sign-in, and keys that nobody knows."""
    raw = {
        **TIME,
        "autoApprove": ["x"],
        "envFile": ".env",
        "oauth": {},
        "odd": 1,
        "description": "d",
        "url": "http://x",
    }
    assert [str(each) for each in one({"mcpServers": {"t": raw}}).left_out] == [
        "url (it is for a url)",
        "oauth (it is for a url)",
        "autoApprove (approval stays with the client)",
        "envFile (it would be given what is in that file: set it in the config yourself)",
        "odd (Pegboard does not know it)",
        "description (it only describes the server)",
    ]


@pytest.mark.scenario("first hour: Variables are carried and never resolved")
def test_variables_are_carried_and_never_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever they are set to now."""
    monkeypatch.setenv("SECRET", "tulip")
    raw = {**TIME, "env": {"A": "${SECRET}", "B": "$SECRET", "C": "%SECRET%", "D": "{env:SECRET}", "E": "a $SECRET b"}}
    assert entry({"mcpServers": {"t": raw}})["env"] == {
        "A": "${SECRET}",
        "B": "${SECRET}",
        "C": "${SECRET}",
        "D": "${SECRET}",
        # Nobody knows whose it is: a shell's, perhaps.
        "E": "a $SECRET b",
    }
    bearer = {"url": "https://d.example", "headers": {"Authorization": "Bearer $SECRET"}}
    assert entry({"mcpServers": {"t": bearer}})["headers"] == {"Authorization": "Bearer ${SECRET}"}


def test_what_is_no_variable_in_its_client_stays_plain_text() -> None:
    """Claude Desktop and OpenCode leave `${X}` alone; Pegboard would fill it in."""
    raw = {"command": "sh", "args": ["-c", "echo ${HOME}"]}
    server = one({"mcpServers": {"t": raw}}, "claude-desktop")
    assert server.entry["args"] == ["-c", "echo $${HOME}"]
    assert "plain text in that client" in server.notes[0]
    assert one({"mcpServers": {"t": raw}}, "claude-code").entry["args"] == ["-c", "echo ${HOME}"]


def test_inputs_of_vs_code_say_which_variable_to_set() -> None:
    """With the description that VS Code would show."""
    text = {
        "inputs": [{"id": "api-key", "type": "promptString", "description": "Your key", "password": True}],
        "servers": {"d": {"type": "http", "url": "https://d.example", "headers": {"K": "${input:api-key}"}}},
    }
    server = one(text, "vscode")
    assert server.entry["headers"] == {"K": "${input:api-key}"}
    assert server.notes == ("set PEGBOARD_INPUT_API_KEY (Your key)",)


def test_folders_of_a_project_become_its_paths(tmp_path: Path) -> None:
    """Pegboard may be started anywhere; a user's own file has no such folder, and a person has to look."""
    (tmp_path / "server.py").touch()
    raw = {"command": "./run", "args": ["${workspaceFolder}/x", "${workspaceFolderBasename}"], "cwd": "sub"}
    assert entry({"servers": {"t": raw}}, "vscode", folder=tmp_path) == {
        "command": str(tmp_path / "run"),
        "args": [f"{tmp_path}/x", tmp_path.name],
        "cwd": str(tmp_path / "sub"),
    }
    script = {"command": "python", "args": ["server.py"]}
    assert entry({"servers": {"t": script}}, "vscode", folder=tmp_path) == {**script, "cwd": str(tmp_path)}
    assert (
        entry({"servers": {"t": {"command": "uvx", "args": ["other"]}}}, "vscode", folder=tmp_path).get("cwd") is None
    )
    assert "check it" in one({"servers": {"t": raw}}, "vscode").notes[0]


def test_what_cannot_be_carried_is_noted() -> None:
    """Files of OpenCode, variables of an editor, and a number whose unit is a guess."""
    opencode = {"mcp": {"d": {"type": "remote", "url": "https://d.example", "headers": {"K": "{file:~/key}"}}}}
    assert "{file:~/key} is not read" in one(opencode, "opencode").notes[0]
    assert "outside of its editor" in one({"servers": {"t": {"command": "x", "args": ["${file}"]}}}).notes[0]
    assert one({"mcpServers": {"t": {**TIME, "timeout": 30000}}}).notes == ("timeout is taken as 30000 milliseconds",)
    assert entry({"mcpServers": {"t": {**TIME, "timeout": 30}}}) == {**TIME, "timeout": 30}
    own = {"mcpServers": {"t": {**TIME, "timeout": 3600, "idleTimeout": 0}}, "pegboard": {}}
    assert entry(own) == {**TIME, "timeout": 3600, "idleTimeout": 0}


def test_the_local_scope_of_claude_code_is_read_with_its_folder(tmp_path: Path) -> None:
    """Relative commands mean that folder."""
    text = {"mcpServers": {"a": TIME}, "projects": {str(tmp_path): {"mcpServers": {"b": {"command": "./b"}}, "x": 1}}}
    servers = {server.name: server for server in read(text, "claude-code").servers}
    assert servers["a"].project is None
    assert servers["b"].project == tmp_path
    assert servers["b"].entry == {"command": str(tmp_path / "b")}
    assert servers["b"].origin.label == f"x ({tmp_path})"


@pytest.mark.parametrize(
    ("raw", "meant"),
    [
        (
            {"command": "npx", "args": ["-y", "mcp-remote@latest", "https://d.example/sse"]},
            {"url": "https://d.example/sse"},
        ),
        (
            {
                "command": "npx",
                "args": ["mcp-remote", "https://d.example", "--header", "Authorization:${AUTH}"],
                "env": {"AUTH": "Bearer tulip"},
            },
            {"url": "https://d.example", "headers": {"Authorization": "Bearer tulip"}},
        ),
        (
            {
                "command": "npx",
                "args": [
                    *(
                        "mcp-remote",
                        "https://d.example",
                        "9696",
                        "--resource",
                        "https://d.example/",
                        "--auth-timeout",
                        "9",
                    ),
                    *("--static-oauth-client-info", '{"client_id": "me", "client_secret": "${SECRET}"}'),
                    *("--static-oauth-client-metadata", '{"scope": "a b"}', "--authorize-param", "audience=x"),
                ],
                "env": {"SECRET": "tulip"},
            },
            {
                "url": "https://d.example",
                "oauth": {
                    "resource": "https://d.example/",
                    "clientId": "me",
                    "clientSecret": "tulip",
                    "scopes": "a b",
                    "params": {"audience": "x"},
                    "redirectUri": "http://localhost:9696/oauth/callback",
                },
            },
        ),
        (
            {"command": "npx", "args": ["mcp-remote", "https://d.example", "9696", "--disable-resource-parameter"]},
            {"url": "https://d.example", "oauth": {"resource": False}},
        ),
        (
            {"command": "cmd", "args": ["/c", "npx", "mcp-remote", "https://d.example", "--transport", "sse-only"]},
            {"type": "sse", "url": "https://d.example"},
        ),
        (
            {"command": "bunx", "args": ["mcp-remote", "http://d.example", "--allow-http", "--ignore-tool", "drop*"]},
            {"url": "http://d.example", "tools": {"deny": ["drop*"]}},
        ),
        (
            {
                "command": "npx",
                "args": ["mcp-remote", "https://d.example", "--header", "K: ${UNSET}"],
                "disabled": True,
            },
            {"url": "https://d.example", "headers": {"K": "${UNSET}"}, "enabled": False},
        ),
    ],
)
def test_mcp_remote_becomes_its_address(raw: dict[str, Any], meant: dict[str, Any]) -> None:
    """Its own variables are filled in as it would do itself."""
    for client in ("claude-desktop", "cursor"):
        assert entry({"mcpServers": {"t": raw}}, client) == meant


@pytest.mark.parametrize(
    "raw",
    [
        {"command": "npx", "args": ["mcp-remote", "https://d.example", "--use-id-token"]},
        {"command": "npx", "args": ["mcp-remote", "https://d.example", "--static-oauth-client-info", "@client.json"]},
        {"command": "npx", "args": ["mcp-remote", "https://d.example"], "env": {"HTTPS_PROXY": "http://p.example"}},
        {"command": "npx", "args": ["-y", "other", "mcp-remote", "https://d.example"]},
        {"command": "npx", "args": ["mcp-remote"]},
    ],
)
def test_mcp_remote_with_more_than_an_address_stays_a_command(raw: dict[str, Any]) -> None:
    """What Pegboard has nothing for must not get lost."""
    assert entry({"mcpServers": {"t": raw}}) == raw


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("npx -y @modelcontextprotocol/server-filesystem@1.2 /tmp", "filesystem"),
        ("docker run -i --rm ghcr.io/x/github-mcp-server", "github"),
        ("python -m my_server", "my"),
        ("/opt/tools/weather.py --all", "weather"),
        ("node dist/index.js", "index"),
        ("https://api.githubcopilot.com/mcp/", "githubcopilot"),
        ("http://localhost:3000/mcp", "localhost"),
        ("http://127.0.0.1:3000/mcp", "local_3000"),
        ("http://[::1]/mcp", "local"),
        ("https://192.168.1.20:8443/mcp", "server_192.168.1.20_8443"),
    ],
)
def test_a_server_without_a_name_gets_one(line: str, name: str) -> None:
    """Of its package, its program or its host."""
    assert one(line).name == name
