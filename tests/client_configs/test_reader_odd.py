"""Whatever is pasted gives servers or reasons, and no key of an entry gets lost without a word."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard.client_configs.dialect import dialect_of
from pegboard.client_configs.entry import UnusableEntry, translate_entry
from pegboard.client_configs.foreign_variables import VariableTranslator
from pegboard.client_configs.import_plan import plan_import
from pegboard.client_configs.reader import read_text
from pegboard.client_configs.reading import TextOrigin
from pegboard.client_configs.table import CLIENTS
from pegboard.config.read import KEYS

MANY = settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
_JSON = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
_PLACES = ["command", "cmd", "args", "url", "serverUrl", "httpUrl", "uri", "env", "headers", "cwd", "type", "transport"]
_OTHERS = [
    "timeout",
    "tools",
    "enabled",
    "disabled",
    "env_vars",
    "requestOptions",
    "includeTools",
    "bearer_token",
    "odd",
]
_TEXTS = [
    "npx",
    "npx -y x",
    "https://d.example",
    "stdio",
    "http",
    "${A}",
    "$A",
    "{env:A}",
    "'",
    "mcp-remote",
    "builtin",
]
_LIKELY = st.sampled_from(_TEXTS) | st.lists(st.sampled_from(_TEXTS), max_size=3) | _JSON
_ENTRIES = st.dictionaries(st.sampled_from([*_PLACES, *_OTHERS, *sorted(KEYS)]), _LIKELY, max_size=6) | _JSON
_SECTIONS = [
    "mcpServers",
    "servers",
    "mcp",
    "context_servers",
    "mcp_servers",
    "extensions",
    "amp.mcpServers",
    "projects",
]
_CONFIGS = st.dictionaries(
    st.sampled_from(_SECTIONS), st.dictionaries(st.text(max_size=6), _ENTRIES, max_size=3) | _JSON, max_size=3
)
_CLIENTS = st.sampled_from([None, *CLIENTS])


@given(_CONFIGS | _ENTRIES, _CLIENTS)
@MANY
def test_any_data_is_servers_or_reasons(config: Any, client: Any) -> None:
    """Never an exception; and what is taken over can be read by Pegboard, or is refused with a reason."""
    origin = TextOrigin("x", "x", client)
    plan = plan_import(read_text(json.dumps(config), origin), {})
    json.dumps(plan.to_dict())
    assert all(each.reason and each.place.startswith("x:") for each in plan.unreadable)


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda data: data.decode("latin-1")), st.booleans())
@MANY
def test_any_text_is_servers_or_reasons(text: str, is_file: bool) -> None:
    """Of a file or of a person."""
    for suffix in ("", ".json", ".toml", ".yaml"):
        read_text(text, TextOrigin("x", "x", suffix=suffix, is_file=is_file))


@given(st.lists(st.sampled_from(["cursor://", "vscode:mcp/install?", "config=", "name=", "%7B", "e30=", "&", "goose://extension?", "cmd=", "{", "'", "claude mcp add ", "-- ", "--env ", "A=", "-H ", "x:y", "\n", "[", "]", "mcp_servers.", "- ", ": ", '"']), max_size=12).map("".join))  # noqa: E501  # fmt: skip
@MANY
def test_any_text_like_a_link_or_a_command_is_servers_or_reasons(text: str) -> None:
    """Made of what links, commands, TOML and YAML are made of."""
    read_text(text, TextOrigin("x", "x"))


# Values that say something, whichever key they stand under.
_WORDS = st.sampled_from(["alpha", "beta", "https://d.example/x"])
_TELLING = {
    "command": _WORDS,
    "cmd": st.just("gamma"),
    "args": st.lists(_WORDS, min_size=1, max_size=2),
    "env": st.dictionaries(st.sampled_from(["A", "B"]), _WORDS, min_size=1),
    "environment": st.dictionaries(st.sampled_from(["C", "D"]), _WORDS, min_size=1),
    "cwd": _WORDS,
    "url": st.just("https://d.example"),
    "httpUrl": st.just("https://e.example"),
    "headers": st.dictionaries(st.sampled_from(["X", "Y"]), _WORDS, min_size=1),
    "http_headers": st.dictionaries(st.sampled_from(["Z"]), _WORDS, min_size=1),
    "requestOptions": st.just({"headers": {"R": "1"}, "verifySsl": False}),
    "env_vars": st.just(["V"]),
    "env_keys": st.just(["W"]),
    "env_http_headers": st.just({"H": "VAR"}),
    "bearer_token_env_var": st.just("TOKEN"),
    "bearer_token": st.just("tulip"),
    "timeout": st.integers(1, 100_000),
    "connectionTimeout": st.integers(1, 100_000),
    "startup_timeout_sec": st.integers(1, 100),
    "tool_timeout_sec": st.integers(1, 100),
    "disabled": st.just(True),
    "includeTools": st.just(["a"]),
    "excludeTools": st.just(["b"]),
    "disabled_tools": st.just(["c"]),
    "tools": st.sampled_from([["d"], {"allow": ["e"]}, {"search": True}]),
    "autoApprove": st.just(["x"]),
    "envFile": st.just(".env"),
    "transport": st.just({"cwd": "/t", "odd": 1}),
    "idleTimeout": st.just(9),
    "keywords": st.just({"a": ["b"]}),
    "nobody_knows_this": st.integers(0, 5),
}
_TELLING_ENTRIES = st.fixed_dictionaries({}, optional=_TELLING)


def outcome(raw: dict[str, Any], client: Any) -> object:
    """All that is said of an entry."""
    try:
        meant = translate_entry(raw, VariableTranslator(dialect_of(client, "")))
    except UnusableEntry as exc:
        return str(exc)
    return json.dumps(meant.entry, sort_keys=True), [str(each) for each in meant.left_out]


@given(_TELLING_ENTRIES, _CLIENTS)
@MANY
def test_no_key_is_lost_without_a_word(raw: dict[str, Any], client: Any) -> None:
    """Without it something else would have come out: it was carried over, or named as left out."""
    whole = outcome(raw, client)
    if isinstance(whole, str):
        return
    for key in raw:
        without = {name: value for name, value in raw.items() if name != key}
        assert outcome(without, client) != whole, key


def test_huge_texts_are_refused_quickly() -> None:
    """A text of many megabytes, and one with many servers."""
    assert "characters" in read_text("x" * 5_000_000, TextOrigin("x", "x")).unreadable[0].reason
    many = json.dumps({"mcpServers": {f"s{n}": {"command": "x"} for n in range(2000)}})
    assert "2,000 servers" in read_text(many, TextOrigin("x", "x")).unreadable[0].reason


LONG_WORD = "x" * 40_000


@pytest.mark.parametrize(
    "text",
    [
        "-" * 40_000,
        "a:" * 20_000,
        json.dumps({"mcpServers": {"a": {"command": f"npx {LONG_WORD}"}}}),
        json.dumps({"mcpServers": {"a": {"command": "npx", "args": LONG_WORD}}}),
    ],
    ids=["dashes", "colons", "command", "args"],
)
def test_a_command_line_of_any_length_is_not_taken_apart(text: str) -> None:
    """It would take quadratic time: a megabyte ran for a quarter of a minute."""
    reading = read_text(text, TextOrigin("x", "x"))
    assert reading.servers == ()
    assert "too long for a command" in reading.unreadable[0].reason


@pytest.mark.parametrize("key", ["timeout", "args", "type", "env", "ttl", "tools"])
def test_numbers_of_any_size_are_servers_or_reasons(key: str) -> None:
    """Python refuses to write those of more than 4,300 digits."""
    digits = "9" * 5000
    for value in (digits, f"[{digits}]", f'{{"A": {digits}}}'):
        text = f'{{"command": "x", "{key}": {value}}}'
        plan = plan_import(read_text(text, TextOrigin("x", "x")), {})
        assert len(plan.servers) + len(plan.unreadable) == 1


@pytest.mark.parametrize("name", ["", " ", "__", "é" * 300, "\ud800", "a\nb", "\u202eevil"])
def test_odd_names_are_servers_or_reasons(name: str) -> None:
    """Any name can be folded to one of ours, or the entry is refused."""
    plan = plan_import(read_text(json.dumps({"mcpServers": {name: {"command": "x"}}}), TextOrigin("x", "x")), {})
    assert len(plan.servers) + len(plan.unreadable) == 1


@pytest.mark.parametrize("part", ["a", '"a b"', "'x'", "a-b "])
def test_a_key_of_thousands_of_parts_is_not_taken_apart(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's parser would take gigabytes for it; wherever in the text it stands."""

    def refuse(_: str) -> Any:
        raise AssertionError("it was parsed")

    monkeypatch.setattr("tomllib.loads", refuse)
    key = ".".join([part] * 5000)
    origin = TextOrigin("the text", "the text")
    for text in (f"{key} = 1", f"[mcp_servers.{key}]\nx = 1", f"x = 1\n[mcp_servers.a]\ny = {{ {key} = 1 }}"):
        reading = read_text(text, origin)
        assert text.startswith(part) or reading.unreadable[0].reason == "not TOML: it is nested too deep"


def test_a_text_with_many_dots_is_read() -> None:
    """Only keys are counted."""
    text = f'[mcp_servers.a]\ncommand = "x"\nargs = ["{"../" * 300}", "{"1, " * 300}"]\n# {". " * 900}'
    assert [server.name for server in read_text(text, TextOrigin("the text", "the text")).servers] == ["a"]
