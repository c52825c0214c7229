"""The arguments of a call as people type them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forking import warm_start
from harness import toy, write_config
from pegboard.cli.arguments import ArgumentError, is_pair, read_arguments

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
        "tags": {"type": "array"},
        "more": {"type": "object"},
        "nothing": {"type": "null"},
        "maybe": {"type": ["integer", "null"]},
        "either": {"anyOf": [{"type": "boolean"}, {"type": "string"}]},
        "named": {"$ref": "#/$defs/a~1b"},
        "choice": {"enum": ["1", "two", 3]},
        "level": {"type": ["integer", "string"], "enum": ["1", 2]},
        "loop": {"$ref": "#/$defs/loop"},
        "any": {},
    },
    "$defs": {"a/b": {"allOf": [{"type": "integer"}]}, "loop": {"anyOf": [{"$ref": "#/$defs/loop"}]}},
}


@pytest.mark.scenario("first hour: Arguments of a call have the type of the schema")
@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("text=5", "5"),
        ("text=", ""),
        ("text=a=b", "a=b"),
        ("text= true ", " true "),
        ("text:=5", 5),
        ("count=5", 5),
        ("count=-12345678901234567890123456789", -12345678901234567890123456789),
        ("ratio=5", 5),
        ("ratio=2.5e3", 2500.0),
        ("flag=true", True),
        ("flag=false", False),
        ('tags=["a", 1]', ["a", 1]),
        ('more={"a": null}', {"a": None}),
        ("nothing=null", None),
        ("maybe=null", None),
        ("maybe=7", 7),
        ("either=true", True),
        ("either=truth", "truth"),
        ("named=3", 3),
        ("choice=1", "1"),
        ("level=1", "1"),
        ("level=2", 2),
        ("loop=x", "x"),
        ("any=5", "5"),
        ("any:=5", 5),
        ("any:=[1, {}]", [1, {}]),
        ("text=日本 😀", "日本 😀"),
    ],
)
def test_a_value_has_the_type_of_the_schema(word: str, value: object) -> None:
    """Texts stay as they are; everything else is read exactly; `:=` is any JSON."""
    (read,) = read_arguments("x", SCHEMA, [word]).values()
    assert read == value
    assert isinstance(read, type(value))
    assert isinstance(read, bool) == isinstance(value, bool)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["count=1.0"], "count must be a whole number, like 5; found '1.0'"),
        (["count=0x10"], "count must be a whole number"),
        (["count= 5"], "count must be a whole number"),
        (["ratio=NaN"], "ratio must be a number, like 2.5"),
        (["flag=yes"], "flag must be true or false; found 'yes'"),
        (["tags=a,b"], "tags must be a JSON array"),
        (["tags=[a]"], "tags: '[a]' cannot be read as JSON"),
        (["maybe=x"], "maybe must be null or a whole number, like 5"),
        (["cuont=5"], "x has no argument 'cuont': did you mean count? It takes text, count, "),
        (["zzzzzz=5"], "x has no argument 'zzzzzz': It takes text"),
        (["count=1", "count=2"], "count is given twice"),
        (["count=1", "five"], "'five' is not KEY=VALUE"),
        (["=5"], "'=5' is not KEY=VALUE"),
        (["any:={"], "any: '{' cannot be read as JSON"),
    ],
)
def test_a_mistake_names_the_key(words: list[str], message: str) -> None:
    """And what would be right, or the nearest key."""
    with pytest.raises(ArgumentError) as refused:
        read_arguments("x", SCHEMA, words)
    assert message in str(refused.value)


def test_keys_that_a_schema_leaves_open_are_taken() -> None:
    """Where it allows others, or is made of schemas that may have them; a tool without arguments says so."""
    for schema in ({"additionalProperties": True}, {"additionalProperties": {"type": "string"}}, {"anyOf": []}):
        assert read_arguments("x", {"properties": {"a": {}}, **schema}, ["b=1"]) == {"b": "1"}
    assert read_arguments("x", {"type": "object"}, ["a=1"]) == {"a": "1"}
    with pytest.raises(ArgumentError, match="it takes none"):
        read_arguments("x", {"type": "object", "additionalProperties": False}, ["a=1"])


def test_pairs_are_told_from_json() -> None:
    """A JSON object may have an equals sign in it."""
    assert is_pair("a=b")
    assert not is_pair('{"a": "b=c"}')
    assert not is_pair("-")


@given(st.text(), st.text())
def test_whatever_is_typed_is_read_or_refused(word: str, schema_type: str) -> None:
    """Never another exception."""
    schema = {"properties": {"a": {"type": schema_type}}}
    for text in (word, f"a={word}", f"a:={word}"):
        try:
            read_arguments("x", schema, [text])
        except ArgumentError:
            continue


def test_a_call_with_pairs(tmp_path: Path) -> None:
    """The tool gets the values; what is wrong ends with exit code 2 and no call."""
    tool = {"name": "echo2", "inputSchema": SCHEMA}
    config = write_config(tmp_path / "pegboard.json", {"one": toy(raw_tools=[tool])})

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        command = [*warm_start(), "call", *words, "--config", str(config)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    big = 2**80
    done = call("one__echo", f"count:={big}", "text=5", "any:=[1, null]")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f'{{"count": {big}, "text": "5", "any": [1, null]}}'
    wrong = call("one__echo2", "cuont=5")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == (
        "pegboard: one__echo2 has no argument 'cuont': did you mean count? It takes text, count, ratio, flag, tags, "
        "more, nothing, maybe, either, named, choice, level, ….\n"
    )
    assert call("one__nope", "a=b").returncode == 2
