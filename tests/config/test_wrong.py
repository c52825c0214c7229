"""What a config file that cannot be used is told: one message with file, place and reason, and nothing half."""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard.config import ConfigError, Settings, read_settings
from pegboard.config.read import parse_settings


def complaint(folder: Path, content: str | bytes, server: str | None = None) -> str:
    """What is said of a file with this content, or of this server alone, without the file's own path."""
    path = folder / "pegboard.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    if server is None:
        with pytest.raises(ConfigError) as caught:
            read_settings(path, {})
        message = str(caught.value)
    else:
        spec = read_settings(path, {}).servers[server]
        assert spec.malformed
        message = spec.problem or ""
    assert "\n" not in message
    assert message.startswith(f"{path}:")
    return message.removeprefix(f"{path}:")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("", "1:1"),
        ("  \n // nothing\n", "1:1"),
        ("{", "1:2"),
        ('{\n  "mcpServers": {\n    "git": {"command": uvx}\n  }\n}', "3:24"),
        ('{"a": 1}\n{"b": 2}', "2:1"),
        ('{\r\n  "a": 1\r\n  "b": 2\r\n}', "3:3"),
        ('{"a": 1,\n "a": 2}', "2:2"),
        ("{\n/* open", "2:1"),
        ("\ufeff{'a': 1}", "1:2"),
    ],
)
def test_broken_json_is_told_with_its_place(tmp_path: Path, content: str, place: str) -> None:
    """A file that is not JSON is refused with line, column and a reason."""
    message = complaint(tmp_path, content)
    assert message.startswith(f"{place}: ")
    assert len(message) > len(place) + 10


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe{\x00}\x00", "1:1: byte 0xff is not UTF-8"),
        (b'{\n  "a": "\xe9"}', "2:9: byte 0xe9 is not UTF-8"),
        (b'\xef\xbb\xbf{\r\n\r\n "\xc3\xa9\xe9"}', "3:4: byte 0xe9 is not UTF-8"),
        (b'{"a": "\xc3', "1:8: byte 0xc3 is not UTF-8"),
    ],
)
def test_other_encodings_are_told_with_their_place(tmp_path: Path, content: bytes, message: str) -> None:
    """A file that is not UTF-8 is refused with the place and the byte that gave it away."""
    assert complaint(tmp_path, content) == message


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.mkdir(), "Is a directory"),
        (lambda path: None, "No such file or directory"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="the system words these differently")
def test_what_is_no_file_is_told(tmp_path: Path, make: Callable[[Path], None], reason: str) -> None:
    """A folder, a missing file or a link to itself is refused with the system's reason."""
    path = tmp_path / "pegboard.json"
    make(path)
    with pytest.raises(ConfigError) as caught:
        read_settings(path, {})
    assert str(caught.value) == f"{path}: {reason}"


@pytest.mark.skipif(sys.platform == "win32", reason="mode bits are of other systems")
def test_missing_rights_are_told(tmp_path: Path) -> None:
    """A file that may not be read is refused with the system's reason."""
    path = tmp_path / "pegboard.json"
    path.write_text("{}")
    path.chmod(0)
    me = os.geteuid()
    if me == 0:
        # Root may read everything; nobody may not.
        os.seteuid(65534)
    try:
        with pytest.raises(ConfigError, match="Permission denied"):
            read_settings(path, {})
    finally:
        os.seteuid(me)


_TEXT, _FLAG, _LIST, _OBJECT = "a text", "true or false", "a list of texts", "an object"
_SECONDS = "a number of seconds"


def _wrong_kinds() -> list[tuple[str, object, str]]:
    """Dotted path, a value of the wrong kind, and what should have been there."""
    right: dict[str, tuple[str, list[object]]] = {
        "mcpServers": (_OBJECT, [[], "x", 1, True]),
        "servers": (_OBJECT, [[], "x", 1]),
        "pegboard": (_OBJECT, [[], "x", False]),
        "mcpServers.git": (_OBJECT, [[], "uvx", 1, None]),
        "mcpServers.git.command": (_TEXT, [["uvx"], 1, {}, False]),
        "mcpServers.git.args": (_LIST, ["x", {}, 1]),
        "mcpServers.git.args.1": (_TEXT, [8080, None, [], True]),
        "mcpServers.git.env": (_OBJECT, [["A=1"], "A=1"]),
        "mcpServers.git.env.A": (_TEXT, [[], {}]),
        "mcpServers.git.cwd": (_TEXT, [1, []]),
        "mcpServers.docs.url": (_TEXT, [1, [], {}]),
        "mcpServers.docs.serverUrl": (_TEXT, [1]),
        "mcpServers.docs.headers": (_OBJECT, [[], "X: 1"]),
        "mcpServers.docs.headers.X": (_TEXT, [[], {}]),
        "mcpServers.git.enabled": (_FLAG, ["true", 1, 0, []]),
        "mcpServers.git.disabled": (_FLAG, ["true", 1]),
        "mcpServers.git.prefix": (_FLAG, ["false", 0]),
        "mcpServers.git.apiKeyFromEnv": (_FLAG, ["yes", 1]),
        "mcpServers.git.tools.allow": (_LIST, ["*", {}]),
        "mcpServers.git.tools.deny": (_LIST, ["*", True]),
        "mcpServers.git.tools.deny.1": (_TEXT, [1]),
        "mcpServers.git.keywords": (_OBJECT, [["x"], "x"]),
        "mcpServers.git.keywords.read": (_LIST, ["x", {}]),
        "mcpServers.git.keywords.read.1": (_TEXT, [1]),
        "pegboard.pinned": (_LIST, ["memory_search", {}]),
        "pegboard.pinned.1": (_TEXT, [1]),
        "pegboard.toolsets": (_LIST, ["memory", {}]),
        "pegboard.toolsets.1": (_TEXT, [1]),
        "pegboard.renamed": (_OBJECT, [["a"], "a"]),
        "pegboard.renamed.a": (_TEXT, [1, None, []]),
        "pegboard.maxNameLength": ("a whole number", ["48", 48.0, True, []]),
        "pegboard.storage": (_TEXT, [1, {}, True]),
        **{
            f"mcpServers.git.{key}": (_SECONDS, ["30", "30s", True, [], {}])
            for key in ("timeout", "connectTimeout", "startTimeout", "idleTimeout", "ttl")
        },
    }
    return [(path, value, wanted) for path, (wanted, values) in right.items() for value in values]


def _with(path: str, value: object) -> dict[str, Any]:
    """A config that is fine but for this one value."""
    *parents, last = path.split(".")
    config: dict[str, Any] = {"mcpServers": {"git": {"command": "uvx"}, "docs": {"type": "http"}}}
    place: Any = config
    for index, step in enumerate(parents):
        fresh: Any = ["fine"] if (parents[index + 1 :] or [last])[0].isdigit() else {}
        place = place.setdefault(step, fresh)
    if isinstance(place, list):
        place.append(value)
    else:
        place[last] = value
    if path.endswith((".headers", ".headers.X")):
        config["mcpServers"]["docs"]["url"] = "https://d.example"
    return config


def _server_of(path: str) -> str | None:
    """The server whose entry a dotted path leads into, if it does."""
    section, _, rest = path.partition(".")
    return rest.partition(".")[0] or None if section == "mcpServers" else None


def written(path: str, value: str) -> tuple[str, str]:
    """A file with this JSON text at this path and nothing else wrong, and the text's line and column."""
    text = json.dumps(_with(path, "@@"), indent=2)
    before, after = text.split('"@@"')
    lines = before.split("\n")
    return before + value + after, f"{len(lines)}:{len(lines[-1]) + 1}"


@pytest.mark.parametrize(("path", "value", "wanted"), _wrong_kinds())
def test_a_value_of_the_wrong_kind(tmp_path: Path, path: str, value: object, wanted: str) -> None:
    """Every setting refuses every other kind of value, and says where it is and what it should be."""
    text, place = written(path, json.dumps(value))
    named = re.sub(r"\.(\d+)", r"[\1]", path)
    assert complaint(tmp_path, text, _server_of(path)).startswith(f"{place}: {named} must be {wanted}, found ")


_HUGE = "1" + "0" * 5000


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("mcpServers.git.type", '"htpp"', "must be one of stdio, http, streamable-http, "),
        ("mcpServers.git.type", '["http"]', "must be one of stdio, http, "),
        ("mcpServers.git.instance", '"own"', 'must be one of shared, session, found "own"'),
        ("pegboard.results.cap", "5", "must be between 200 and 100000000, or 0, found 5"),
        ("mcpServers.git.instance", "true", "must be one of shared, session, found true"),
        ("pegboard.expose", '"some"', 'must be one of auto, all, search, found "some"'),
        ("pegboard.expose", "1", "must be one of auto, all, search, found 1"),
        ("pegboard.toolsets", '["memory", "notes"]', 'names "notes", which is not a toolset: use discovery, memory, '),
        ("pegboard.memory.namespace", '" "', "must not be empty"),
        ("pegboard.memory.namespace", '"a\\nb"', "must not contain control characters"),
        ("pegboard.memory.namespace", '"\\u200b"', "must have a character that can be seen"),
        pytest.param(
            "pegboard.memory.namespace",
            f'"{"n" * 129}"',
            "has 129 characters, 128 is the most",
            id="pegboard.memory.namespace-long",
        ),
        ("pegboard.memory.answerSize", "12499", "must be between 12500 and 1000000, found 12499"),
        ("pegboard.maxNameLength", "15", "must be between 16 and 128, found 15"),
        ("pegboard.maxNameLength", "129", "must be between 16 and 128, found 129"),
        pytest.param(
            "pegboard.maxNameLength",
            _HUGE,
            "must be between 16 and 128, found a very long number",
            id="pegboard.maxNameLength-huge",
        ),
        pytest.param(
            "mcpServers.git.command",
            _HUGE,
            "must be a text, found a very long number",
            id="mcpServers.git.command-huge",
        ),
        ("mcpServers.git.timeout", "0", "must be a positive number of seconds, found 0"),
        ("mcpServers.git.ttl", "0", "must be a positive number of seconds, found 0"),
        ("mcpServers.git.connectTimeout", "-1.5", "must be a positive number of seconds, found -1.5"),
        ("mcpServers.git.idleTimeout", "-1", "must be a positive number of seconds, found -1"),
        ("mcpServers.git.startTimeout", "1e300", "must be a positive number of seconds, found 1e+300"),
        pytest.param(
            "mcpServers.git.timeout",
            _HUGE,
            "must be a positive number of seconds, found a very long number",
            id="mcpServers.git.timeout-huge",
        ),
        ("mcpServers.git.timeout", "10000001", "must be a positive number of seconds, found 10000001"),
        ("mcpServers.docs.url", '""', "must be an http:// or https:// address"),
        ("mcpServers.docs.url", '"example.com/mcp"', "must be an http:// or https:// address"),
        ("mcpServers.docs.url", '"ftp://example.com"', "must be an http:// or https:// address"),
        ("mcpServers.docs.url", '"https://"', "must be an http:// or https:// address"),
        ("mcpServers.docs.url", '"https://:8080/mcp"', "must be an http:// or https:// address"),
        ("mcpServers.docs.url", '"https://h:99999/"', "is not an address: check its host and port"),
        ("mcpServers.docs.url", '"https://h:port/"', "is not an address: check its host and port"),
        ("mcpServers.docs.url", '"http://[::1"', "is not an address: check its host and port"),
    ],
)
def test_a_value_that_means_nothing(tmp_path: Path, path: str, value: str, reason: str) -> None:
    """A value that cannot be used is refused with place, path and reason, whatever its size."""
    text, place = written(path, value)
    assert complaint(tmp_path, text, _server_of(path)).startswith(f"{place}: {path} {reason}")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({}, "an object"),
        ([], "a list"),
        (False, "false"),
        ("soon", '"soon"'),
        ("x" * 40, '"' + "x" * 40 + '"'),
        ("x" * 41, "a text"),
    ],
)
def test_what_was_found_is_shown(tmp_path: Path, value: object, shown: str) -> None:
    """The message shows what stands there, a long text or a whole object only by its kind."""
    text, _ = written("mcpServers.git.timeout", json.dumps(value))
    assert complaint(tmp_path, text, "git").endswith(f"must be a number of seconds, found {shown}")


@pytest.mark.parametrize(("digits", "shown"), [("9" * 40, "9" * 40), ("9" * 41, "a very long number")])
def test_a_long_number_is_not_shown(tmp_path: Path, digits: str, shown: str) -> None:
    """A number that would fill the screen is only called long."""
    text, _ = written("mcpServers.git.command", digits)
    assert complaint(tmp_path, text, "git").endswith(f"must be a text, found {shown}")


@pytest.mark.parametrize("content", ["[]", '"x"', "1", "true"])
def test_the_file_itself_must_be_an_object(tmp_path: Path, content: str) -> None:
    """A file that is JSON but no object is refused at its first character."""
    assert complaint(tmp_path, content).startswith("1:1: the file must be an object, found ")


def test_the_file_cannot_be_null(tmp_path: Path) -> None:
    """A file that only says null is refused too, although a null member counts as left out."""
    assert complaint(tmp_path, "null") == "1:1: the file must be an object, found null"


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "${NOT_SET}", "args": 5},
        {"command": "${NOT_SET}", "env": []},
        {"command": "x", "args": ["${NOT_SET}"], "cwd": 5},
        {"url": "https://${NOT_SET}", "headers": []},
        {"url": "https://d.example", "headers": {"A": "${NOT_SET}", "B": []}},
    ],
)
def test_a_missing_variable_hides_no_wrong_kind(tmp_path: Path, entry: dict[str, Any]) -> None:
    """Whether a file can be used does not depend on which variables happen to be set."""
    assert " must be " in complaint(tmp_path, json.dumps({"mcpServers": {"git": entry}}), "git")


def test_a_mistake_in_one_entry_is_that_servers_alone(tmp_path: Path) -> None:
    """It is invalid and says where and why; the others are as they were, and one that is disabled stays so."""
    entries = {"git": {"command": "uvx"}, "docs": {"url": 1}, "off": {"url": 1, "disabled": True}, "odd": []}
    text = json.dumps({"mcpServers": entries})
    assert "mcpServers.docs.url must be a text" in complaint(tmp_path, text, "docs")
    assert "mcpServers.odd must be an object, found a list" in complaint(tmp_path, text, "odd")
    servers = read_settings(tmp_path / "pegboard.json", {"DOCS_MCP_URL": "https://d.example"}).servers
    assert (servers["git"].problem, servers["git"].command) == (None, "uvx")
    # An address from the environment does not mend the entry.
    assert servers["docs"].problem is not None
    assert [spec.enabled for spec in servers.values()] == [True, True, False, True]


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        *(("comand", "command"), ("agrs", "args"), ("evn", "env"), ("header", "headers"), ("Url", "url")),
        *(("commnad", "command"), ("commandd", "command"), ("urls", "url")),
        *(("timout", "timeout"), ("start_timeout", "startTimeout"), ("enable", "enabled"), ("keyword", "keywords")),
    ],
)
def test_a_misspelt_key_is_a_mistake(tmp_path: Path, key: str, meant: str) -> None:
    """The message has its place and the key that was meant."""
    text = json.dumps({"mcpServers": {"git": {"command": "uvx", key: "x"} if meant != "command" else {key: "x"}}})
    place = text.index(f'"{key}"') + len(key) + 5
    assert complaint(tmp_path, text, "git") == f'1:{place}: mcpServers.git.{key} is not a key: use "{meant}"'


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ({"mcp": {"time": {"type": "local", "command": ["uvx"]}}}, 'is in the format of OpenCode ("mcp")'),
        ({"context_servers": {"time": {"command": "uvx"}}}, 'is in the format of Zed ("context_servers")'),
        ({"mcp_servers": {"time": {"command": "uvx"}}}, 'is in the format of Codex ("mcp_servers")'),
        ({"amp.mcpServers": {"time": {"command": "uvx"}}}, 'is in the format of Amp ("amp.mcpServers")'),
        ({"command": "uvx", "args": ["x"]}, "is the entry of one server, without a name"),
        ({"httpUrl": "https://d.example"}, "is the entry of one server, without a name"),
        ({"time": {"command": "uvx"}}, 'has servers outside of "mcpServers"'),
    ],
)
def test_a_file_in_another_programs_shape_says_what_it_is(tmp_path: Path, config: object, what: str) -> None:
    """Instead of being one without servers; the message has the command that takes them over."""
    command = f"pegboard import {tmp_path / 'pegboard.json'}"
    assert complaint(tmp_path, json.dumps(config)) == f"1:1: the file {what}. To take its servers over, run: {command}"


def test_a_file_that_is_toml_says_so(tmp_path: Path) -> None:
    """As Codex writes it."""
    said = complaint(tmp_path, '[mcp_servers.time]\ncommand = "uvx"\n')
    assert said.startswith("1:2: ")
    assert said.endswith(
        f"It seems to be TOML. To take its servers over, run: pegboard import {tmp_path}/pegboard.json"
    )


def test_a_section_inside_of_a_section_is_named(tmp_path: Path) -> None:
    """The whole snippet was pasted where its inside belongs; the other servers go on."""
    text = json.dumps({"mcpServers": {"mcpServers": {"time": {"command": "uvx"}}, "git": {"command": "uvx"}}})
    said = complaint(tmp_path, text, "mcpservers")
    assert 'mcpServers.mcpServers has servers inside: take the outer "mcpServers" away' in said
    assert read_settings(tmp_path / "pegboard.json", {}).servers["git"].problem is None


def test_two_words_of_others_for_one_key_must_agree(tmp_path: Path) -> None:
    """Nobody can know which of the addresses is meant."""
    text = json.dumps({"mcpServers": {"docs": {"serverUrl": "https://a.example", "httpUrl": "https://b.example"}}})
    said = complaint(tmp_path, text, "docs")
    assert said.endswith('mcpServers.docs.httpUrl and "serverUrl" mean the same key: use "url"')


@pytest.mark.parametrize("key", ["title", "tags", "alwaysAllow", "autoApprove", "description", "icon", "dev"])
def test_keys_of_other_clients_are_no_mistake(tmp_path: Path, key: str) -> None:
    """A snippet for another client pastes in, with all that only that client understands."""
    path = tmp_path / "pegboard.json"
    path.write_text(json.dumps({"mcpServers": {"git": {"command": "uvx", key: "x"}}}))
    assert read_settings(path, {}).servers["git"].problem is None


def test_an_entry_without_an_address_says_where_and_what_is_missing(tmp_path: Path) -> None:
    """Neither a command nor a URL, or not the one that its type needs."""
    path = tmp_path / "pegboard.json"
    path.write_text('{"mcpServers": {\n "a": {}, "b": {"type": "http"}, "c": {"args": []}}}')
    missing = [("a", "2:7", "command or url"), ("b", "2:16", "url"), ("c", "2:39", "command")]
    assert [spec.problem for spec in read_settings(path, {}).servers.values()] == [
        f'{path}:{place}: Invalid MCP server config for "{name}": missing {what}' for name, place, what in missing
    ]


def test_an_address_with_a_password_is_not_repeated(tmp_path: Path) -> None:
    """The message about a bad address does not show it: it can hold a password."""
    config = {"mcpServers": {"docs": {"url": "https://ada:tulip℀42@d.example/"}}}
    message = complaint(tmp_path, json.dumps(config), "docs")
    assert "mcpServers.docs.url is not an address" in message
    assert "tulip" not in message


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_TEXTS = ["http", "stdio", "https://d.example", "~x/y", "~\0", "${A}", "${", "$${A}", "session", "all", "memory"]
_LIKELY = st.sampled_from(_TEXTS) | st.lists(st.sampled_from(_TEXTS), max_size=2) | _JSON
_PLACE_KEYS = ["type", "command", "args", "env", "cwd", "url", "serverUrl", "headers", "apiKeyFromEnv"]
_TREATMENT_KEYS = ["enabled", "disabled", "prefix", "instance", "tools", "keywords", "timeout", "idleTimeout"]
_OWN_KEYS = ["expose", "pinned", "toolsets", "renamed", "maxNameLength", "storage", "other"]
_CONFIGS = st.one_of(
    st.builds(
        lambda name, command, entry: {"mcpServers": {name: {"command": command, **entry}}},
        st.text(max_size=8),
        st.sampled_from(_TEXTS),
        st.dictionaries(st.sampled_from(_PLACE_KEYS), _LIKELY, max_size=3),
    ),
    st.builds(lambda entry: {"servers": {"x": entry}}, st.dictionaries(st.sampled_from(_TREATMENT_KEYS), _LIKELY)),
    st.builds(lambda own: {"pegboard": own}, st.dictionaries(st.sampled_from(_OWN_KEYS), _LIKELY, max_size=3)),
    _JSON,
)


@given(_CONFIGS)
@settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_any_json_is_settings_or_a_config_error(config: object) -> None:
    """Whatever stands in a file, reading it gives settings or a ConfigError that names the file, and no other error."""
    file = Path("/nowhere/pegboard.json")
    try:
        result = parse_settings(json.dumps(config), file, {"A": "tulip"})
    except ConfigError as exc:
        assert str(exc).startswith(f"{file}:1:")  # noqa: PT017
    else:
        assert isinstance(result, Settings)
        assert result.path == file
