"""The part of a result that a model is given: it fills its room, and says how to go on."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from pegboard.results.abridge import META_KEY, Note, abridge
from pegboard.results.contents import texts_of
from pegboard.results.json_part import find_json
from results.corpus import corpus
from results.shelf import text_of, text_result

ID = "r_7Kd0a2Q9xYzW1bC3dE5fGh"
CAP = 40_000
PROSE = "\n".join(f"line {number}: " + "some words " * (number % 9) for number in range(3000))


def part_of(value: Any, cap: int = CAP, note: Note | None = None) -> str:
    """What a model is given of a value as JSON."""
    return text_of(cut(text_result(json.dumps(value)), cap, note))


def cut(result: Any, cap: int, note: Note | None = None) -> dict[str, Any]:
    """A result in so many characters."""
    texts = texts_of(result)
    return abridge(result, texts, find_json(texts), cap, note or Note(ID), None)


def is_full(text: str) -> bool:
    return CAP * 0.9 < len(text) <= CAP


@pytest.mark.scenario("results: A part fills its room, and says how to go on")
@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"title": "A page", "content": PROSE}, "content"),
        ({"tags": ["a", "b", "c"], "page": {"body": PROSE}, "size": 7}, "page.body"),
        ([1, 2, PROSE, 3, {"x": []}], "[2]"),
        ({"a.b": {"c/d": PROSE}}, "/a.b/c~1d"),
    ],
)
def test_a_long_string_has_its_beginning_and_its_end(value: Any, path: str) -> None:
    """As lines, with the path that it is read by, and the offset to go on from; what is around it stands before."""
    part = part_of(value)
    assert is_full(part)
    _, frame, title, first, *_ = part.split("\n")
    assert json.loads(frame.replace(f"… {len(PROSE):,} characters, below", PROSE[:0])) is not None
    assert f"… {len(PROSE):,} characters, below" in frame
    assert (title, first) == (f"{path}, {len(PROSE):,} characters:", PROSE.partition("\n")[0])
    before, _, rest = part.partition("\n[… ")
    gap, _, end = rest.partition(" …]\n")
    shown = before.partition(f"{title}\n")[2] + "\n"
    assert PROSE.startswith(shown)
    assert PROSE.endswith(end)
    assert gap == f'{len(PROSE) - len(shown) - len(end):,} characters are left out: path="{path}", offset={len(shown)}'


@pytest.mark.scenario("results: A part fills its room, and says how to go on")
def test_a_few_large_records_fill_the_room() -> None:
    """Each has a fair share, with the beginning and the end of its strings; what a small one leaves is for others."""
    five = part_of([{"title": f"page {number}", "body": PROSE} for number in range(5)])
    assert is_full(five)
    lines = five.split("\n")
    assert lines[1] == "5 records, each {title: string, body: string}"
    assert lines[2] == 'long strings are cut; one of them whole: path="[0].body"'
    assert lines[3] == "0 to 3:"
    for number, line in ((0, lines[4]), (3, lines[7]), (4, lines[9])):
        record = json.loads(line)
        assert record["title"] == f"page {number}"
        assert 6000 < len(line) < 8000
        head, said, tail = record["body"].partition(f"… ({len(PROSE):,} characters) …")
        assert (PROSE.startswith(head), bool(said), PROSE.endswith(tail)) == (True, True, True)
        assert len(tail) > 1000
    assert is_full(part_of({"rows": [{"n": 1}, {"n": 2}, {"a": PROSE, "b": PROSE}, {"n": 3}]}))


@pytest.mark.scenario("results: A part fills its room, and says how to go on")
@pytest.mark.parametrize("by_name", [False, True])
def test_records_say_where_to_go_on(*, by_name: bool) -> None:
    """The offset of the first that is not shown; also of members of an object, which have their names."""
    items = [{"id": number, "name": f"name {number}"} for number in range(3000)]
    named = {f"user/{item['id']}": item for item in items}
    part = part_of({"rows": named if by_name else items, "total": 3000})
    assert is_full(part)
    lines = part.split("\n")
    title = f"3,000 records{' by name' if by_name else ''} at rows, each {{id: integer, name: string}}"
    assert lines[1:3] == [title, 'around them: {"rows":"3,000 records","total":3000}']
    count = int(lines[3].removeprefix("0 to ").removesuffix(":")) + 1
    shown = [json.loads(f"{{{line}}}" if by_name else line) for line in [*lines[4 : 4 + count], lines[-1]]]
    wanted = [*items[:count], items[-1]]
    assert shown == ([{f"user/{item['id']}": item} for item in wanted] if by_name else wanted)
    assert lines[4 + count :][:2] == [
        f"[… {2999 - count:,} records are left out: offset={count} …]",
        "2999, the last:",
    ]


@pytest.mark.scenario("results: A part fills its room, and says how to go on")
def test_who_cannot_read_on_is_not_told_to() -> None:
    """No paths and no offsets where nothing was kept, or where there is no tool to read it."""
    values: list[Any] = [
        {"title": "A page", "content": PROSE},
        [{"body": PROSE} for _ in range(5)],
        [{"id": number} for number in range(9000)],
        {"a": PROSE, "b": PROSE, "c": PROSE},
    ]
    for value in values:
        for note in (Note(None), Note(ID, can_read=False)):
            part = part_of(value, note=note)
            assert "offset=" not in part
            assert "path=" not in part
    assert 'path="a"' in part_of(values[3])


@pytest.mark.scenario("results: A part fills its room, and says how to go on")
def test_settings_and_other_objects_fill_the_room() -> None:
    """Also where a small list is somewhere in them."""
    rng = random.Random(1)
    sections = {
        f"section {number}": {f"key {number} {at}": ["v" * rng.randrange(9)] * rng.randrange(9) for at in range(90)}
        for number in range(9)
    }
    part = part_of(sections, 20_000)
    assert 16_000 < len(part) <= 20_000
    assert META_KEY in cut(text_result(json.dumps(sections)), 20_000)["_meta"]
    assert "records" not in cut(text_result(json.dumps(sections)), 20_000)["_meta"][META_KEY]


@pytest.mark.scenario("results: A part fills its room, and says how to go on")
@pytest.mark.parametrize("cap", [200, 300, 500, 1000, 10_000])
def test_no_part_is_larger_than_its_cap(cap: int) -> None:
    """However small that is, and whatever the result."""
    for name, result in corpus()[::3]:
        if texts_of(result).characters > cap:
            assert texts_of(cut(result, cap)).characters <= cap, name


@pytest.mark.scenario("results: No text is larger than its cap")
def test_what_comes_out_too_long_is_cut_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON beside another text, by a character, or by however much."""
    result = {
        "content": [*text_result(json.dumps({"a": {"k" * 150: PROSE}}))["content"], {"type": "text", "text": "t"}]
    }
    for cap in range(200, 1000, 10):
        assert len(text_of(cut(result, cap, Note(ID, can_read=False)))) <= cap
    monkeypatch.setattr("pegboard.results.abridge.write_json", lambda *_, **__: PROSE)
    for cap in (200, 1000, 10_000):
        text = text_of(cut(result, cap))
        assert len(text) <= cap
        assert "characters are left out: offset=" in text
