"""Arguments in records: a digest, names and types, or values without what is secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from audit.readers import records_of
from audit.test_chain import NOW, TOOL, call
from harness import LIMIT, http_client, open_gateway, toy
from pegboard import exactjson
from pegboard.audit.arguments import LONGEST_VALUE, MOST_BYTES, show_arguments
from pegboard.audit.composer import Composer
from pegboard.audit.file import AuditFile
from pegboard.audit.redaction import Redaction, is_secret_name
from pegboard.config import ConfigError, parse_settings
from pegboard.config.audit_settings import AuditSettings

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


@pytest.mark.scenario("audit: Values are recorded without what is secret")
def test_values_are_there_without_what_is_secret() -> None:
    """By its name at any depth, and by its form in any text."""
    shown = show("values", ARGUMENTS)
    assert "quokka" not in json.dumps(shown)
    assert shown["title"] == "hello"
    assert shown["inner"] == {"apiKey": "[redacted]", "Access-Token": "[redacted]", "note": "fine"}
    assert shown["count"] == 3


@pytest.mark.scenario("audit: Values are recorded without what is secret")
def test_the_config_names_more_by_json_pointers() -> None:
    """For tools that fit a pattern; a * is any name or place in a list."""
    arguments = {"a": {"b": "x", "c": "y"}, "list": [{"v": 1}, {"v": 2}], "a/b": 5, "a~1": 6, "a~b": 7}
    assert show("values", arguments, one__echo=("/a/b", "/list/*/v", "/a~1b", "/a~01")) == {
        "a": {"b": "[redacted]", "c": "y"},
        "list": [{"v": "[redacted]"}, {"v": "[redacted]"}],
        "a/b": "[redacted]",
        "a~1": "[redacted]",
        "a~b": 7,
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


def test_what_readers_of_json_cannot_read_is_a_text() -> None:
    """Numbers that no float holds, and half of a surrogate pair: a strict reader reads what is shown."""
    text = b'{"a":1e999999,"b":[-1e400],"c":' + b"1" * 5000 + rb',"d":"x\ud800","e":12345678901234567890123}'
    shown = msgspec.json.decode(show_arguments("values", text, len(text), "one__echo", Redaction({})))
    assert shown == {
        "a": "1e999999",
        "b": ["-1e400"],
        "c": "1" * LONGEST_VALUE + "…",
        "d": "x?",
        "e": 12345678901234567890123,
    }


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


async def test_a_number_that_no_float_holds_hides_no_records(tmp_path: Path) -> None:
    """They can be read over REST and are in the file, its own record and those around it."""
    audit = {"arguments": "values", "file": "audit.jsonl"}
    async with open_gateway(tmp_path, {"one": toy()}, audit=audit) as gateway, http_client(gateway.mcp) as client:
        await client.until_in("tools", "one__echo")
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http:
            body = b'{"arguments":{"a":1e999999}}'
            await http.post("/api/tools/one__echo/call", content=body, headers={"content-type": "application/json"})
            await client.request("tools/call", {"name": "one__echo", "arguments": exactjson.parse(b'{"a":-1e400}')})
            answer = await http.get("/api/calls?kind=call")
        shown = [record["arguments"] for record in answer.json()["data"]["records"]]
        (file,) = tmp_path.glob("audit-*.jsonl")
        lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {"a": "-1e400"} in shown
    assert [line["arguments"] for line in lines if line["kind"] == "call"] == shown[::-1]


def test_a_record_that_cannot_be_read_or_written_costs_no_other(tmp_path: Path) -> None:
    """What was kept before is shown as the text it is, and so it is in the file."""
    record, *_ = Composer(b"k").compose([call(NOW)], 0, AuditSettings()).records()
    odd = msgspec.structs.replace(record, arguments='{"a":1e999999}')
    assert odd.to_dict()["arguments"] == {"…": '{"a":1e999999}'}
    unwritable = msgspec.structs.replace(record, arguments="\ud800")
    AuditFile(tmp_path / "audit.jsonl").append([record, odd, unwritable, record])
    (file,) = tmp_path.iterdir()
    shown = [json.loads(line).get("arguments") for line in file.read_text().splitlines()]
    assert shown == [None, {"…": '{"a":1e999999}'}, None, None]


def test_arguments_of_which_no_record_can_be_made_are_left_out_of_it() -> None:
    """The others of its batch are as they are, and the chain goes on."""
    events = [call(NOW), call(NOW, b'{"\\ud800":1}', tool="odd"), call(NOW, tool="next")]
    batch = Composer(b"k").compose(events, 0, AuditSettings(arguments="values"))
    assert [(record.tool, record.args_digest != "", record.number) for record in batch.records()] == [
        (TOOL, True, 1),
        ("odd", False, 2),
        ("next", True, 3),
    ]
    assert (batch.records()[1].args_bytes, batch.unmade) == (len(b'{"\\ud800":1}'), 0)


def test_an_event_of_which_nothing_can_be_made_is_counted() -> None:
    """It leaves no gap in the numbers of its chain."""
    composer = Composer(b"k")
    broken = (NOW * 10**9, *call(NOW)[1:6], None, *call(NOW)[7:])  # type: ignore[index]
    batch = composer.compose([call(NOW), broken, call(NOW)], 0, AuditSettings())  # type: ignore[list-item]
    assert ([record.number for record in batch.records()], batch.unmade) == ([1, 2], 1)


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
