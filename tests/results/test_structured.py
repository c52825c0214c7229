"""Structured content that is too large: as short as its schema allows, and never anything that it does not."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from harness import HANDSHAKE_VERSIONS, MODERN, http_client
from pegboard import exactjson
from pegboard.results.structured import MARKER, shorten_structured
from results.shelf import about, open_shelf, records

ROWS = {"type": "array", "items": {"type": "object", "required": ["id", "title", "state"]}}
VALUE: dict[str, Any] = {"rows": records(500), "note": "n" * 4000, "count": 500}


def schema_of(**properties: Any) -> dict[str, Any]:
    """A schema that wants all of these members."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def size(value: Any) -> int:
    return len(exactjson.dump(value).decode())


@pytest.mark.parametrize(
    ("schema", "is_note_whole"),
    [
        (schema_of(rows=ROWS, note={"type": "string"}, count={"type": "integer"}), False),
        (schema_of(rows=ROWS, note={"type": "string", "minLength": 4000}), True),
        (schema_of(rows=ROWS, note={"type": "string", "pattern": "^n+$"}), True),
        (schema_of(rows={**ROWS, "minItems": 3}, note={"enum": [VALUE["note"]]}), True),
    ],
)
def test_what_the_schema_allows_is_shortened_and_no_more(schema: dict[str, Any], *, is_note_whole: bool) -> None:
    """Lists and strings, save those that would not be valid any more."""
    shorter = shorten_structured(VALUE, schema, 6000, "ask for the rest")
    assert jsonschema_rs.validator_for(schema).is_valid(shorter)
    assert (shorter["note"] == VALUE["note"]) == is_note_whole
    assert shorter["count"] == 500
    assert size(shorter) <= 6000
    assert shorter["rows"] == VALUE["rows"][: len(shorter["rows"])]
    told = shorter[MARKER]
    assert f"{500 - len(shorter['rows']):,} of 500 items of rows" in told
    assert ("characters of note" in told) != is_note_whole
    assert told.endswith("; ask for the rest")


@pytest.mark.scenario("results: Structured content stays valid")
def test_what_was_left_out_is_said_where_the_schema_allows_it() -> None:
    """In a member whose name nothing else has; where no other member may be, nothing is said."""
    strict = {**schema_of(rows=ROWS, note={}, count={}), "additionalProperties": False}
    assert shorten_structured(VALUE, strict, 6000).keys() == VALUE.keys()
    assert len(shorten_structured(VALUE, strict, 6000)["rows"]) < 500
    numbers = {**schema_of(rows=ROWS, note={}, count={}), "additionalProperties": {"type": "integer"}}
    assert shorten_structured(VALUE, numbers, 6000).keys() == VALUE.keys()
    taken = {**VALUE, MARKER: "ours", f"{MARKER}_": "too"}
    shorter = shorten_structured(taken, schema_of(rows=ROWS), 6000)
    assert (shorter[MARKER], shorter[f"{MARKER}_"]) == ("ours", "too")
    assert shorter[f"{MARKER}__"].startswith("left out here: ")
    small = {"a": "b"}
    assert shorten_structured(small, {"type": "object"}, 6000) is small
    many = {f"list {number}": list(range(100)) for number in range(9)}
    assert shorten_structured(many, {"type": "object"}, 2000)[MARKER].endswith("items of list 4, more")


UNSHORTENED = [
    {"const": VALUE},
    {"$ref": "https://example.com/x"},
    {"type": 7},
    {"not": {}},
    False,
    schema_of(rows={**ROWS, "minItems": 500}),
    schema_of(rows={**ROWS, "contains": {"properties": {"id": {"const": 499}}}}),
]


@pytest.mark.scenario("results: Structured content stays valid")
@pytest.mark.parametrize("schema", UNSHORTENED)
def test_what_cannot_be_shortened_stays_whole(schema: Any) -> None:
    """Also where the schema is of no use, or the value was never valid."""
    assert shorten_structured(VALUE, schema, 3000) is VALUE


@pytest.mark.scenario("results: Structured content stays valid")
def test_any_value_stays_valid() -> None:
    """Schemas made for the value they are of, with limits at random."""
    rng = random.Random(7)
    for _ in range(150):
        value, schema = make(rng, 0)
        validator = jsonschema_rs.validator_for(schema)
        assert validator.is_valid(value)
        shorter = shorten_structured(value, schema, rng.choice([100, 1000, 5000]))
        assert validator.is_valid(shorter), schema
        assert size(shorter) <= size(value)


def make(rng: random.Random, depth: int) -> tuple[Any, dict[str, Any]]:
    """A value, and a schema that it fits."""
    kind = rng.choice(["string", "array", "object", "integer"] if depth < 4 else ["string", "integer"])
    if kind == "string":
        text = "".join(rng.choices("abc é日", k=rng.randrange(400)))
        least = rng.choice([{}, {}, {"minLength": len(text)}, {"minLength": len(text) // 2}, {"const": text}])
        return text, {"type": "string", **least}
    if kind == "array":
        item, schema = make(rng, depth + 1)
        items = [item] * rng.randrange(40)
        least = rng.choice([{}, {}, {"minItems": len(items)}, {"minItems": len(items) // 2}])
        return items, {"type": "array", "items": schema, **least}
    if kind == "object":
        made = {f"k{number}": make(rng, depth + 1) for number in range(rng.randrange(6))}
        return {key: value for key, (value, _) in made.items()}, schema_of(
            **{key: each for key, (_, each) in made.items()}
        )
    return rng.randrange(10**9), {"type": "integer"}


@pytest.mark.scenario("results: Structured content stays valid")
@pytest.mark.anyio
@pytest.mark.both_paths
@pytest.mark.parametrize("version", [HANDSHAKE_VERSIONS[-1], MODERN])
async def test_a_client_is_given_what_its_tool_promises(version: str, tmp_path: Path) -> None:
    """With an output schema the content is there and fits it; without one the text has it all."""
    schema = schema_of(rows=ROWS, count={"type": "integer"})
    value = {"rows": records(), "count": 2000}
    result = {"content": [{"type": "text", "text": exactjson.dump(value).decode()}], "structuredContent": value}
    tools = {"typed": {"outputSchema": schema}, "strict": {"outputSchema": schema_of(rows={**ROWS, "minItems": 2000})}}
    async with (
        open_shelf(tmp_path, tools=tools, results={"cap": 8000}) as (gateway, shelf),
        http_client(gateway.mcp, version) as client,
    ):
        arguments = shelf.put(result)
        given = await client.call("shelf__typed", arguments)
        assert jsonschema_rs.validator_for(schema).is_valid(given["structuredContent"])
        assert 2 < len(given["structuredContent"]["rows"]) < 200
        assert size(given["structuredContent"]) + len(given["content"][0]["text"]) <= 8000
        told = given["structuredContent"][MARKER]
        assert told.endswith(f'of 2,000 items of rows; whole: result_read("{about(given)["id"]}")')
        assert "structuredContent" not in await client.call("shelf__get", arguments)
        strict = await client.call("shelf__strict", arguments)
        assert strict["structuredContent"] == value
        # What cannot be shortened leaves the text its usual room.
        assert 7000 < len(strict["content"][0]["text"]) <= 8000
        assert about(strict)["records"] == 2000
