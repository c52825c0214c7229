"""What of a server may never be shown, and what makes it the same server as before."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard.config import ConfigError, ServerSpec, read_settings
from pegboard.config.secrets import display_address


def spec_of(folder: Path, entry: Mapping[str, Any], **environment: str) -> ServerSpec:
    path = folder / "pegboard.json"
    path.write_text(json.dumps({"mcpServers": {"docs": entry}}), "utf-8")
    return read_settings(path, environment).servers["docs"]


@pytest.mark.parametrize(
    ("headers", "secrets"),
    [
        ({"Authorization": "Bearer tulip-42"}, {"Bearer tulip-42", "tulip-42"}),
        ({"Authorization": "Basic YWRhOnR1bGlw"}, {"Basic YWRhOnR1bGlw", "YWRhOnR1bGlw"}),
        ({"X-Key": "tulip-42", "X-Team": "blue"}, {"tulip-42", "blue"}),
        ({"Authorization": "Bearer ${TOKEN}"}, {"Bearer rose-17", "rose-17"}),
        ({"X-Key": "tul"}, set[str]()),
        ({"X-Key": 123456}, {"123456"}),
    ],
)
def test_header_values_are_secret(tmp_path: Path, headers: dict[str, Any], secrets: set[str]) -> None:
    """Every header value is secret, with and without the word before the token."""
    assert spec_of(tmp_path, {"url": "https://d.example", "headers": headers}, TOKEN="rose-17").secrets == secrets


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "${V}"},
        {"command": "x", "args": ["--key=${V}"]},
        {"command": "x", "env": {"PLAIN": "a${env:V}b"}},
        {"command": "x", "cwd": "/srv/${V}"},
        {"url": "https://d.example/${V}/mcp"},
        {"url": "https://d.example", "headers": {"X": "${V:-none}"}},
    ],
)
def test_expanded_variables_are_secret(tmp_path: Path, entry: dict[str, Any]) -> None:
    """Whatever came out of a variable is secret wherever it was put."""
    assert "tulip-42" in spec_of(tmp_path, entry, V="tulip-42").secrets


def test_what_was_expanded_before_a_missing_variable_is_secret(tmp_path: Path) -> None:
    """A server with a problem still keeps quiet about what it had."""
    spec = spec_of(tmp_path, {"command": "x", "args": ["${V}", "${NONE}"]}, V="tulip-42")
    assert spec.problem is not None
    assert "tulip-42" not in spec.problem
    assert "tulip-42" in spec.secrets


@pytest.mark.parametrize(
    "name",
    [
        *("GITHUB_PAT", "DATABASE_URL", "SENTRY_DSN", "DB_CONN", "PGCONNECTION", "sasToken", "SIG"),
        *("API_KEY", "GITHUB_TOKEN", "CLIENT_SECRET", "AWS_CREDENTIALS", "session_cookie", "X_AUTHORIZATION"),
        *("DB_PASSWORD", "Passwd", "SMTP_PASS", "PASSPHRASE", "DB_PWD"),
    ],
)
def test_env_values_with_a_secret_name_are_secret(tmp_path: Path, name: str) -> None:
    """A literal value in `env` is secret where its name says so."""
    assert spec_of(tmp_path, {"command": "x", "env": {name: "tulip-42"}}).secrets == {"tulip-42"}


@pytest.mark.parametrize("name", ["TZ", "LOG_LEVEL", "HOME", "DEBUG", "PORT", "PATH", "PATTERN", "CONNECT_TIMEOUT"])
def test_other_env_values_are_not_secret(tmp_path: Path, name: str) -> None:
    """An ordinary setting is not hidden: a log without it would be of no use."""
    assert spec_of(tmp_path, {"command": "x", "env": {name: "plain-value"}}).secrets == frozenset()


@pytest.mark.parametrize(
    ("url", "secrets"),
    [
        ("https://ada:tulip-42@d.example/", {"tulip-42", "YWRhOnR1bGlwLTQy"}),
        ("https://ada:tulip%2F42@d.example/", {"tulip%2F42", "tulip/42", "YWRhOnR1bGlwLzQy"}),
        ("https://ada@d.example/", set[str]()),
        ("https://ghp-tulip@d.example/", {"ghp-tulip"}),
        ("https://d.example/?sig=tulip&code=rose", {"tulip", "rose"}),
        ("https://d.example/?x=tulip-42&page=1000", {"tulip-42"}),
        ("https://d.example/s/tulip42rose17lily5pansy3/mcp", {"tulip42rose17lily5pansy3"}),
        ("https://d.example/?api_key=tulip-42&page=1000", {"tulip-42"}),
        ("https://d.example/?ApiKey=tulip%2B4+2", {"tulip%2B4+2", "tulip+4 2"}),
        ("https://d.example/?access%5Ftoken=tulip-42", {"tulip-42"}),
        ("https://d.example/?token=a=b==&token=second", {"a=b==", "second"}),
        ("https://d.example/?token=&key", set[str]()),
        ("https://d.example/?page=1000#token=x", set[str]()),
        ("https://d.example/?key=tul", set[str]()),
    ],
)
def test_passwords_and_keys_in_a_url_are_secret(tmp_path: Path, url: str, secrets: set[str]) -> None:
    """Who we are there, values of the query and keys in the path are secret, as written there and as meant."""
    assert spec_of(tmp_path, {"url": url}).secrets == secrets
    assert read_settings(None, {"RUBE_MCP_URL": url}).servers["rube"].secrets == secrets


def test_an_address_as_written_can_be_shown_after_redaction(tmp_path: Path) -> None:
    """With the secrets taken out, the address itself gives nothing away."""
    spec = spec_of(tmp_path, {"url": "https://ada:p%40ss-1@d.example/mcp?token=tulip%2F42&q=1"})
    assert display_address(spec) == "https://[redacted]@d.example/mcp?token=[redacted]&q=[redacted]"
    assert "tulip" not in spec.redactor.clean(f"GET {spec.url}: tulip/42 is refused")


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        (["-y", "pkg", "--token", "tulip-42"], "npx -y pkg --token [redacted]"),
        (["--api-key=tul"], "npx --api-key=[redacted]"),
        (["https://[::1/x?token=tulip-42"], "npx [redacted]"),
        (["--token", "--verbose"], "npx --token --verbose"),
        (["-e", "GITHUB_PAT=tulip-42", "--path", "/srv"], "npx -e GITHUB_PAT=[redacted] --path /srv"),
        (["--header", "Authorization: Bearer tulip-42"], "npx --header [redacted]"),
        (["-H", "X-Team:tulip-42"], "npx -H [redacted]"),
        (["postgresql://ada:tulip-42@db.example/shop"], "npx postgresql://[redacted]@db.example/shop"),
        (["-c", "serve --secret tulip-42 && x"], "npx -c serve --secret [redacted] && x"),
        (["a b"], "npx 'a b'"),
    ],
)
def test_secrets_in_arguments_are_not_shown(tmp_path: Path, args: list[str], shown: str) -> None:
    """The value of an option, a variable or a header whose name says so, and what is secret in an address."""
    spec = spec_of(tmp_path, {"command": "npx", "args": args})
    assert display_address(spec) == shown
    assert ("tulip-42" in spec.redactor.clean("it said: tulip-42")) is ("tulip-42" not in str(args))


def test_a_quote_does_not_hide_a_secret(tmp_path: Path) -> None:
    """An argument is quoted for a shell only after what is secret in it is gone."""
    spec = spec_of(tmp_path, {"command": "x", "args": ["${V}", "a b"]}, V="tulip'42")
    assert display_address(spec) == "x [redacted] 'a b'"


def test_harmless_values_of_secret_names_are_not_secret(tmp_path: Path) -> None:
    """`--auth none` must not blot out the word in every message."""
    assert spec_of(tmp_path, {"command": "x", "args": ["--auth", "none", "--token=true"]}).secrets == frozenset()


_ODD = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1, max_size=6)
_PLANTED: tuple[Callable[[str], dict[str, Any]], ...] = (
    lambda v: {"url": f"https://ada:{quote(v, safe='')}@d.example/"},
    lambda v: {"url": f"https://{quote(v, safe='')}@d.example/"},
    lambda v: {"url": f"https://d.example/?x={quote_plus(v)}"},
    lambda v: {"url": "https://d.example", "headers": {"X-Any": v}},
    lambda v: {"url": "https://d.example", "headers": {"Authorization": f"Bearer {v}"}},
    lambda v: {"command": "x", "args": ["--token", f"{v}"]},
    lambda v: {"command": "x", "args": [f"--api-key={quote(v)}"]},
    lambda v: {"command": "x", "args": [f"mongodb://ada:{quote(v, safe='')}@h/db"]},
    *(lambda v, n=n: {"command": "x", "env": {n: v}} for n in ("GITHUB_PAT", "DATABASE_URL", "SENTRY_DSN", "DB_CONN")),
    lambda v: {"command": "x", "env": {"HEADERS": json.dumps({"Authorization": f"Bearer {quote(v)}"})}},
    lambda v: {"command": "x", "args": ["${V}"]},
    lambda v: {"command": "x", "env": {"PLAIN": "${V}"}},
    lambda v: {"url": "https://d.example/${V}/mcp"},
)


@given(st.sampled_from(_PLANTED), _ODD, st.sampled_from(["{}", "<{}>", "https://h/?q={}", "a{}b"]))
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_a_planted_secret_is_never_said(
    tmp_path: Path, place: Callable[[str], dict[str, Any]], odd: str, around: str
) -> None:
    """Whatever the place and the characters, neither the address nor any spelling of the value shows it."""
    value = f"s3cr3t{odd}k3y"
    spec = spec_of(tmp_path, place(value), V=value)
    said = display_address(spec)
    for spelling in (value, quote(value, safe=""), json.dumps(value), repr(value)):
        said += spec.redactor.clean(around.format(spelling))
    assert "s3cr3t" not in said


@pytest.mark.parametrize(("key", "secret"), [("abc", False), ("abcd", True), ("tulip-42", True)])
def test_keys_of_the_environment_are_secret(tmp_path: Path, key: str, secret: bool) -> None:
    """An API key is secret however it came to the server, unless it is too short to be one."""
    defined = read_settings(None, {"DOCS_MCP_URL": "https://d.example", "DOCS_API_KEY": key}).servers["docs"]
    asked = spec_of(tmp_path, {"url": "https://d.example", "apiKeyFromEnv": True}, DOCS_API_KEY=key)
    assert defined.headers == asked.headers == {"Authorization": f"Bearer {key}"}
    assert (key in defined.secrets, key in asked.secrets) == (secret, secret)


def test_overriding_a_server_keeps_its_secrets(tmp_path: Path) -> None:
    """Secrets of the file's entry stay secret after the environment moved the server."""
    entry = {"url": "https://ada:tulip-42@old.example", "headers": {"X": "rose-17"}}
    environment = {"DOCS_MCP_URL": "https://ada:lily-5@new.example", "DOCS_API_KEY": "pansy-3"}
    assert spec_of(tmp_path, entry, **environment).secrets >= {"tulip-42", "rose-17", "lily-5", "pansy-3"}


@given(st.dictionaries(st.sampled_from("ABCDE"), st.text(alphabet="ab ", max_size=6)))
@settings(derandomize=True, deadline=None)
def test_short_texts_are_never_secret(values: dict[str, str]) -> None:
    """Nothing under four characters is a secret: taking it out would tear every message apart."""
    environment = {f"S{name}_MCP_URL": "https://s.example" for name in values}
    environment |= {f"S{name}_API_KEY": value for name, value in values.items()}
    for spec in read_settings(None, environment).servers.values():
        assert all(len(secret) >= 4 for secret in spec.secrets)


def test_the_address_of_the_storage_keeps_its_password(tmp_path: Path) -> None:
    """It may come from the environment, a variable without a value is named, and no repr shows it."""
    path = tmp_path / "pegboard.json"
    path.write_text(json.dumps({"pegboard": {"storage": "postgresql://ada:${DB_PASSWORD}@db.example/pegboard"}}))
    found = read_settings(path, {"DB_PASSWORD": "tulip-42"})
    assert found.storage == "postgresql://ada:tulip-42@db.example/pegboard"
    assert "tulip-42" not in repr(found)
    with pytest.raises(ConfigError, match=r"pegboard\.json:1:\d+: pegboard\.storage \$\{DB_PASSWORD\} has no value"):
        read_settings(path, {})


# The same server as before

_COMMAND = {"command": "uvx", "args": ["a", "b"], "cwd": "/srv", "env": {"A": "1"}}
_ADDRESS = {"type": "http", "url": "https://d.example/mcp", "headers": {"X": "1"}}


@pytest.mark.parametrize(
    ("entry", "change"),
    [
        (_COMMAND, {"env": {"A": "2", "B": "3"}}),
        (_COMMAND, {"timeout": 1, "startTimeout": 2, "idleTimeout": 0, "ttl": 4, "connectTimeout": 1}),
        (_COMMAND, {"enabled": False, "prefix": False, "instance": "session"}),
        (_COMMAND, {"tools": {"allow": ["x"]}, "keywords": {"x": ["y"]}}),
        (_COMMAND, {"type": "stdio"}),
        (_ADDRESS, {"headers": {"X": "2", "Y": "3"}}),
        (_ADDRESS, {"type": "streamable-http"}),
        (_ADDRESS, {"timeout": 1, "connectTimeout": 2, "ttl": 4}),
    ],
)
def test_how_a_server_is_treated_is_not_what_it_is(
    tmp_path: Path, entry: dict[str, Any], change: dict[str, Any]
) -> None:
    """Times, headers, env values and filters can change, and the catalog on disk is still this server's."""
    before, after = spec_of(tmp_path, entry), spec_of(tmp_path, entry | change)
    assert before.fingerprint == after.fingerprint


@pytest.mark.parametrize(
    ("entry", "change"),
    [
        (_COMMAND, {"command": "npx"}),
        (_COMMAND, {"args": ["a"]}),
        (_COMMAND, {"args": ["b", "a"]}),
        (_COMMAND, {"args": ["ab"]}),
        (_COMMAND, {"args": []}),
        (_COMMAND, {"cwd": "/tmp"}),
        (_COMMAND, {"cwd": None}),
        (_COMMAND, {"command": None, "url": "https://d.example/mcp"}),
        (_ADDRESS, {"url": "https://d.example/mcp/"}),
        (_ADDRESS, {"url": "https://d.example:8443/mcp"}),
        (_ADDRESS, {"url": "https://d.example/mcp?team=blue"}),
        (_ADDRESS, {"type": "sse"}),
    ],
)
def test_where_a_server_is_is_what_it_is(tmp_path: Path, entry: dict[str, Any], change: dict[str, Any]) -> None:
    """Another command, argument, folder, URL or transport is another server with a catalog of its own."""
    before, after = spec_of(tmp_path, entry), spec_of(tmp_path, entry | change)
    assert before.fingerprint != after.fingerprint


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    """It is written to disk, so it may depend on nothing that changes from start to start."""
    spec = ServerSpec(name="git", given_name="git", command="uvx", args=("mcp-server-git",))
    assert spec.fingerprint == "7a8d6da6dd54a3ff1cae717400ab34b5"
    assert replace(spec, name="other", given_name="Other").fingerprint == spec.fingerprint


_PARTS = st.text(alphabet="ab", max_size=2)
_PLACES = st.tuples(_PARTS, st.lists(_PARTS, max_size=3).map(tuple), _PARTS, _PARTS)


@given(_PLACES, _PLACES)
@settings(derandomize=True, max_examples=500)
def test_no_two_places_share_a_fingerprint(
    one: tuple[str, tuple[str, ...], str, str], other: tuple[str, tuple[str, ...], str, str]
) -> None:
    """Parts cannot slip from one argument, or from arguments to folder, into the next."""

    def spec(place: tuple[str, tuple[str, ...], str, str]) -> ServerSpec:
        command, args, cwd, url = place
        return ServerSpec(name="a", given_name="a", command=command, args=args, cwd=cwd, url=url)

    assert (spec(one).fingerprint == spec(other).fingerprint) is (one == other)


def test_a_secret_with_a_tab_is_hidden_in_an_address_too(tmp_path: Path) -> None:
    """Whoever reads an address leaves out its tabs and line ends."""
    spec = spec_of(tmp_path, {"url": "https://d.example/${V}/mcp"}, V="s3cr3t\tk3y")
    assert display_address(spec) == "https://d.example/[redacted]/mcp"
