"""An entry for a page: whatever may be a secret is hidden, and what is no secret can be read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.config.aliases import ALIASES
from pegboard.config.hidden_values import hide_values, with_variables

HIDDEN = "[redacted]"
# No text around the word has it, and no part of it is left where a secret was cut in two.
WORD = "tulip"
# Of every kind that a secret has: with blanks, slashes, quotes, dollars, and what an address would end at.
letters = st.text(st.sampled_from("aZ9/+=-_. $@:;,&#?%!'\"\\|<>~^*()[]{}üé"), max_size=9)
secrets = st.builds(lambda before, after: f"{WORD}{before}{WORD}{after}{WORD}", letters, letters)
# What an address can have where somebody wrote it well.
plain = st.builds(lambda inner: f"{WORD}{inner}{WORD}", st.text(st.sampled_from("aZ9+-_.~!*'"), max_size=9))
names = st.sampled_from(["API_KEY", "MY_PASSWORD", "STRIPE", "HOOK", "X", "Authorization", "Accept", "User-Agent"])


def words_of(entry: dict[str, Any]) -> str:
    return json.dumps([hide_values(entry), with_variables(entry, "one")], ensure_ascii=False)


def spell(key: str) -> st.SearchStrategy[str]:
    return st.sampled_from([key, *ALIASES.get(key, ())])


@given(key=st.sampled_from(["env", "headers"]).flatmap(spell), name=names, secret=secrets, form=st.sampled_from(
    ["{}", "Bearer {}", "https://hooks.example/a/{}", "${{A}}{}", "{}${{A}}", "${{NOSUCH:-{}}}", "Bearer ${{C:-{}}}",
     "${{A}}${{B:-{}}}", "$${{{}}}", "${{A:{}}}", "${{A-{}}}", "${{env:A:-{}}}"]
))  # fmt: skip
def test_no_value_of_a_variable_or_header_is_shown(key: str, name: str, secret: str, form: str) -> None:
    """Under any of their keys, whatever the name says and the value looks like, also as a default."""
    assert WORD not in words_of({"command": "true", key: {name: form.format(secret)}})
    assert WORD not in words_of({key: [f"{name}={secret}"]})
    assert WORD not in words_of({key: {name: {"value": secret}, "B": 7}})


@given(key=spell("args"), secret=secrets, form=st.sampled_from(
    [["--api-key", "{}"], ["--password={}"], ["--header", "Authorization: Bearer {}"], ["-H", "X-Key: {}"],
     ["-e", "API_KEY={}"], ["API_KEY={}"], ["Authorization: Bearer {}"], ["-u", "me:{}"], ["--token", "${{A:-{}}}"],
     ["--x", "${{A:-{}}}"], ['{{"token": "{}"}}'], ["-p", "{}"]]
))  # fmt: skip
def test_no_secret_of_an_argument_is_shown(key: str, secret: str, form: list[str]) -> None:
    """Behind an option, a name, or the beginning of a header, to its end."""
    if not secret.startswith("-"):
        assert WORD not in words_of({"command": "server", key: [word.format(secret) for word in form]})


@given(key=spell("url"), secret=plain, form=st.sampled_from(
    ["http://h/mcp?key={}", "http://h/mcp?{}", "http://me:{}@h/mcp", "http://{}@h/mcp", "http://h/mcp#{}",
     "me:{}@h/mcp",
     "http://h/mcp;key={}", "http://h/mcp?a=${{A:-{}}}", "http://h/${{A:-{}}}/mcp", "http://h/mcp?a=${{A}}{}",
     "http://h/mcp?a=1&b={}", "http://${{A}}:{}@h/", "http://h/a1b2c3d4e5f6{}/mcp"]
))  # fmt: skip
def test_no_secret_of_an_address_is_shown(key: str, secret: str, form: str) -> None:
    """Who we are there, its query, what stands behind it, and keys in its path; also in an argument."""
    assert WORD not in words_of({key: form.format(secret)})
    assert WORD not in words_of({key: form.format(f"{secret}==")})


@given(secret=secrets, key=st.text(min_size=1, max_size=12).filter(lambda key: WORD not in key))
def test_what_means_nothing_to_pegboard_is_hidden(secret: str, key: str) -> None:
    """A key of another client may be for a secret, and so may a value of the wrong kind, and a key beside its own."""
    unknown = f"{key}!"
    for value in (secret, [secret], {"a": {"b": secret}}):
        assert WORD not in words_of({"command": "x", unknown: value})
        assert WORD not in words_of({"command": "x", "oauth": {unknown: value, "params": {"a": value}}})
        for own, aliases in ALIASES.items():
            assert WORD not in words_of({own: "x", **dict.fromkeys(aliases, value)})
    for known in ("url", "command", "cwd", "args", "env", "headers", "envFile", "oauth", "timeout", "type", "prefix"):
        assert WORD not in words_of({known: {"a": secret}})
    for name in ("clientSecret", "client_secret", "privateKey", "assertion", "idp-client-secret"):
        for outer in ("oauth", "auth"):
            assert WORD not in words_of({outer: {name: secret}})
            assert WORD not in words_of({outer: {name: f"${{A:-{secret}}}"}})


@pytest.mark.parametrize(
    "secret",
    ["sk_live_51H8abcd1234efgh", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEX"],
)
def test_a_key_that_nothing_names_is_hidden(secret: str) -> None:
    """A word of letters and digits that nobody chose as a name."""
    assert secret not in words_of({"command": "server", "args": [secret, f"--x={secret}"]})
    assert secret not in words_of({"command": "server", "args": ["postgres://u:" + secret + "@h/db;x"]})


@pytest.mark.parametrize(
    "args",
    [
        ["-y", "@modelcontextprotocol/server-filesystem@2025.8.21", "/home/ada/projects-of-2024/x1y2z3x1y2z3x1y2"],
        ["run", "-i", "-t", "--rm", "-p", "8080:80", "ghcr.io/example/server:1.2.3"],
        ["-u", "-m", "server", "--port", "8080", "-t", "http", "--token", "${TOKEN}", "--key=${KEY}"],
        ["--url", "https://example.com/mcp", "two words", "ümlaut"],
    ],
)
def test_plain_arguments_are_shown(args: list[str]) -> None:
    """Packages, paths, ports, programs' options, and variables."""
    command = {"run": "docker", "-u": "python"}.get(args[0], "npx")
    entry = {"command": command, "args": args, "cwd": "/srv/a", "timeout": 7, "tools": {"deny": ["get_token=*"]}}
    assert hide_values(entry) == with_variables(entry, "one") == entry


@pytest.mark.parametrize("tools", [["look", "read_*"], []])
def test_a_plain_list_of_tools_is_shown_as_those_that_are_let_through(tools: list[str]) -> None:
    """Whoever adds to what is shown adds to that."""
    entry = {"command": "true", "tools": tools}
    assert hide_values(entry) == with_variables(entry, "one") == {"command": "true", "tools": {"allow": tools}}


def test_an_entry_is_shown_in_our_words() -> None:
    """Under our keys; of a variable that it is set and where it comes from, without what stands for it."""
    entry = {
        "serverUrl": "https://example.com/@ada/mcp/v1?a=x&b=${B:-y}",
        "http_headers": {"A": "Bearer ${A:-x}", "B": "y", "C": "${file:c.txt}"},
        "auth": {"CLIENT_ID": "me", "CLIENT_SECRET": "x", "tokenUrl": "https://a.example/token"},
        "theirs": "x",
    }
    assert hide_values(entry) == {
        "url": f"https://example.com/@ada/mcp/v1?a={HIDDEN}&b=${{B}}",
        "headers": {
            "A": {"set": True, "from": "Bearer ${A}"},
            "B": {"set": True},
            "C": {"set": True, "from": "${file:c.txt}"},
        },
        "oauth": {"clientId": "me", "clientSecret": HIDDEN, "tokenEndpoint": "https://a.example/token"},
        "theirs": HIDDEN,
    }
    assert with_variables(entry, "one") == {
        "url": "https://example.com/@ada/mcp/v1?a=${ONE_SECRET}&b=${B}",
        "headers": {"A": "Bearer ${A}", "B": "${ONE_B}", "C": "${file:c.txt}"},
        "oauth": {"clientId": "me", "clientSecret": "${ONE_CLIENTSECRET}", "tokenEndpoint": "https://a.example/token"},
    }
    assert hide_values({"url": "https://me:x@h.example/a"}) == {"url": f"https://{HIDDEN}@h.example/a"}
    assert hide_values({"args": ["a://u:x/y@h/d"]}) == {"args": [f"a://{HIDDEN}@h/d"]}
    args = ["--api-key", "x/y", "--password=z"]
    assert with_variables({"command": "x", "args": args}, "one")["args"] == [
        "--api-key",
        "${ONE_SECRET}",
        "--password=${ONE_SECRET_2}",
    ]


def test_a_long_value_is_hidden_as_a_whole() -> None:
    """To look for secrets in megabytes would keep everybody waiting."""
    for piece in ("a", "://a:", "${a:-", "a1", "-", "--token ", "@", "a=", "${A}"):
        entry = dict.fromkeys(("command", "url", "cwd"), piece * 300_000)
        shown = hide_values({**entry, "args": [piece * 300_000], "env": {"A": piece * 300_000}})
        assert shown == {**dict.fromkeys(entry, HIDDEN), "args": [HIDDEN], "env": {"A": {"set": True}}}
