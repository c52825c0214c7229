"""Large JSON values, read part by part."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pegboard import exactjson
from pegboard.results import path
from pegboard.results.json_value import PORTION, parse_value
from pegboard.results.path import members_of

LONG = "x" * PORTION
VALUES: list[Any] = [
    *(LONG, [LONG], {"a": LONG}, [1, LONG, [2, {"b": [LONG, None, LONG]}], 3], {"a": 1, "b": {"c": LONG, "d": True}}),
    *([[number] * 20 for number in range(PORTION // 20)], {f"key {number}": [number] for number in range(PORTION)}),
    *([], {}, "", 7, [[[]]], {"": {}}, ['é€😀\n\\"' * PORTION]),
]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_parts_put_together_are_the_value(value: Any) -> None:
    """In the same order."""
    assert json.dumps(parse_value(json.dumps(value).encode())) == json.dumps(value)


def test_all_levels_may_be_used() -> None:
    """Two hundred, as in any JSON."""
    for data in ('{"a":' * 200 + '"%s"' + "}" * 200, '[["%s",' + "[" * 198 + "]" * 200):
        assert parse_value((data % LONG).encode()) == json.loads(data % LONG)


def test_numbers_are_exact() -> None:
    """And written as they were."""
    data = b'[%b1e400,{"a":0.1000000000000000055511151231257827},"%b"]' % (b"-0," * PORTION, LONG.encode())
    assert exactjson.dump(parse_value(data)) == data


@pytest.mark.parametrize(
    "data",
    [
        *('{"a": "%s"', '["%s" 1]', '{"a": "%s"}}'),
        *('{"a":' * 201 + '"%s"' + "}" * 201, '[["%s",' + "[" * 200 + "]" * 202),
    ],
    ids=range(5),
)
def test_what_is_no_json_is_refused(data: str) -> None:
    """Also what is nested too deep."""
    with pytest.raises(exactjson.NotJson):
        parse_value((data % LONG).encode())


def test_an_object_with_too_many_members_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are counted as they come; one that is there twice counts twice."""
    data = json.dumps({f"key {number}": number for number in range(100_000)}).encode()
    members = members_of(data)
    assert members is not None
    assert set(map(type, members)) == {str}
    assert (list(members)[:2], len(members), bytes(memoryview(members["key 7"]))) == (["key 0", "key 1"], 100_000, b"7")
    monkeypatch.setattr(path, "MOST_MEMBERS", 99_999)
    assert members_of(data) is None
    with pytest.raises(exactjson.NotJson, match="too many members"):
        parse_value(data)
