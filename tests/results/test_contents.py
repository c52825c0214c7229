"""The texts of a result that is still JSON: long ones are read in portions, and come out as they are."""

from __future__ import annotations

import json
from collections.abc import Generator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.results import contents

# What a cut must not go through: characters of several bytes, escapes, pairs of them, rows of backslashes.
letters = st.sampled_from(["a", "\\", '"', "\n", "é", "漢", "😀", "\ufffd", "u", "ud83d", "00", " ", "\\u", "\x00"])
texts = st.lists(st.tuples(letters, st.integers(1, 40)), max_size=40).map(
    lambda runs: "".join(letter * count for letter, count in runs)
)


@pytest.fixture(scope="module", autouse=True)
def short_portions() -> Generator[None]:
    patch = pytest.MonkeyPatch()
    patch.setattr(contents, "_PORTION", 80)
    yield
    patch.undo()


def parse(written: str) -> str:
    """The text of a result with this block."""
    result = contents.parse_result([b'{"content": [{"type": "text", "text": ', written.encode(), b"}]}"])
    assert result is not None
    return result["content"][0]["text"]


@pytest.mark.scenario("results: The whole is kept, and pages put together are the exact text")
@pytest.mark.parametrize("is_ascii", [True, False])
@given(text=texts)
@settings(max_examples=300)
def test_a_text_in_portions_is_the_text(text: str, *, is_ascii: bool) -> None:
    assert parse(json.dumps(text, ensure_ascii=is_ascii)) == text


@pytest.mark.scenario("results: The whole is kept, and pages put together are the exact text")
def test_portions_are_read_one_by_one() -> None:
    """Also where every character is an escape, or half of one."""
    for text in ("😀" * 200, "漢字" * 200, "a\\" * 300):
        written = json.dumps(text).encode()
        portions = list(contents._parse_portions(memoryview(written)))
        assert len(portions) > 3
        assert "".join(portions) == text


def test_a_long_row_of_backslashes_is_read_all_the_same() -> None:
    """There is no place to cut it that is surely right."""
    assert parse(json.dumps("\\" * 400)) == "\\" * 400


@pytest.mark.scenario("results: What others send keeps nobody waiting")
def test_a_text_of_more_values_than_the_structured_content_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """To read it takes thirty times its memory. One that says the same is found to, however it is written."""
    value = {"rows": [{"a": [], "b": 'é", ["'}] * 20}

    def repeats(text: str, value: object) -> bool:
        content = [{"type": "text", "text": text}]
        return contents.texts_of({"content": content, "structuredContent": value}).is_repeated

    for indent in (None, 2):
        written = json.dumps(value, indent=indent)
        assert len(written) > contents._PORTION
        assert repeats(written, value)
        assert repeats(written, {"result": value})
    monkeypatch.setattr(contents.exactjson, "parse", None)
    assert not repeats(json.dumps({"rows": [*value["rows"], 1]}), value)
    assert not repeats("[" + "[]," * 1000 + "0]", {"a": "[],[]," * 400})
