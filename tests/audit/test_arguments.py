"""Arguments in records: a digest, names and types, or values without what is secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from audit.readers import records_of
from harness import http_client, open_gateway, toy
from pegboard.audit.arguments import LONGEST_VALUE, MOST_BYTES, show_arguments
from pegboard.audit.redaction import Redaction, is_secret_name
from pegboard.config import ConfigError, parse_settings

pytestmark = pytest.mark.anyio

ARGUMENTS = {
    "title": "hello",
    "count": 3,
    "ratio": 0.5,
    "flag": True,
    "none": None,
    "list": [1],
    "inner": {"apiKey": "quokka", "Access-Token": "quokka", "note": "fine"},
    "password": "quokka",
    "text": "say Bearer quokka.quokka to pgb_quokkaquokka",
    "url": "https://me:quokka@example.com/",
}


def show(mode: Any, arguments: Any, **redact: tuple[str, ...]) -> Any:
    text = json.dumps(arguments).encode()
    shown = show_arguments(mode, text, len(text), "one__echo", Redaction(redact))
    return json.loads(shown) if shown else None


def test_names_are_names_and_types() -> None:
    """Nothing of a value is among them."""
    assert show("digest", ARGUMENTS) is None
    assert show("names", ARGUMENTS) == {
        "title": "string",
        "count": "integer",
        "ratio": "number",
        "flag": "boolean",
        "none": "null",
        "list": "array",
        "inner": "object",
        "password": "string",
        "text": "string",
        "url": "string",
    }


def test_values_are_there_without_what_is_secret() -> None:
    """By its name at any depth, and by its form in any text."""
    shown = show("values", ARGUMENTS)
    assert "quokka" not in json.dumps(shown)
    assert shown["title"] == "hello"
    assert shown["inner"] == {"apiKey": "[redacted]", "Access-Token": "[redacted]", "note": "fine"}
    assert shown["count"] == 3


def test_the_config_names_more_by_json_pointers() -> None:
    """For tools that fit a pattern; a * is any name or place in a list."""
    arguments = {"a": {"b": "x", "c": "y"}, "list": [{"v": 1}, {"v": 2}], "a/b": 5}
    assert show("values", arguments, one__echo=("/a/b", "/list/*/v", "/a~1b")) == {
        "a": {"b": "[redacted]", "c": "y"},
        "list": [{"v": "[redacted]"}, {"v": "[redacted]"}],
        "a/b": "[redacted]",
    }
    assert show("values", arguments, **{"one__*": ("/a",)})["a"] == "[redacted]"
    assert show("values", arguments, two__echo=("/a",)) == arguments


def test_values_are_cut_and_so_is_a_record() -> None:
    """A long text is cut, many members are left out with their number, and deep ones are not followed."""
    shown = show("values", {"long": "x" * 1000, "next": 1})
    assert shown == {"long": "x" * LONGEST_VALUE + "…", "next": 1}
    many = show("values", {f"name{at}": "y" * 200 for at in range(100)})
    assert len(json.dumps(many, ensure_ascii=False).encode()) <= MOST_BYTES
    assert many["…"].endswith(" more")
    deep: Any = "bottom"
    for _ in range(50):
        deep = {"d": deep}
    assert "bottom" not in json.dumps(show("values", {"deep": deep}))
    assert show_arguments("values", b'{"a":', 2_000_000, "t", Redaction({})) == '{"…":"2000000 bytes"}'


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        *[(name, True) for name in ("password", "userPassword", "api-key", "API_KEY", "apikey", "Authorization")],
        *[(name, True) for name in ("client_secret", "sessionId", "x-auth", "refreshToken", "private_key", "cookie")],
        *[(name, False) for name in ("author", "keyboard", "title", "monkey", "compass", "opinion", "keywords")],
    ],
)
def test_names_of_secrets_are_told_from_others(name: str, secret: bool) -> None:
    """Whatever their spelling."""
    assert is_secret_name(name) is secret


@pytest.mark.both_paths
async def test_values_are_recorded_where_the_config_wants_them(tmp_path: Path) -> None:
    """The same on both paths."""
    audit = {"arguments": "values", "redact": {"one__*": ["/inner/note"]}}
    async with open_gateway(tmp_path, {"one": toy()}, audit=audit) as gateway, http_client(gateway.mcp) as client:
        await client.until_in("tools", "one__echo")
        await client.request("tools/call", {"name": "one__echo", "arguments": ARGUMENTS})
        (record,) = await records_of(gateway)
    shown = record.to_dict()["arguments"]
    assert "quokka" not in repr(record)
    assert (shown["title"], shown["inner"]["note"]) == ("hello", "[redacted]")


@pytest.mark.parametrize(
    ("audit", "reason"),
    [
        ({"keeps": 3}, "did you mean keep"),
        ({"keep": 0}, "between 1"),
        ({"bytes": 10}, "between 1048576"),
        ({"arguments": "all"}, "digest, names, values"),
        ({"redact": {"one__*": ["password"]}}, "no JSON pointer"),
        ({"strict": "yes"}, "true or false"),
        ("on", "an object"),
    ],
)
def test_a_section_that_is_not_understood_is_an_error(audit: Any, reason: str) -> None:
    """A misspelt key would keep what it should not."""
    with pytest.raises(ConfigError, match=reason):
        parse_settings(json.dumps({"pegboard": {"audit": audit}}), Path("pegboard.json"), {})
