"""Text that a model reads and a person does not see."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.catalog.definitions import tool_problem
from pegboard.hidden_text import explain_hidden_text, find_hidden, reveal

HARMLESS = {
    "a family": "👩\u200d👩\u200d👧 and 👨🏽\u200d💻",
    "a heart on fire": "❤\ufe0f\u200d🔥",
    "a keycap": "1\ufe0f\u20e3 then #\ufe0f\u20e3",
    "a flag of a region": "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "a rainbow flag": "🏳\ufe0f\u200d🌈 🏳\ufe0f\u200d⚧\ufe0f",
    "arrows and signs": "↔\ufe0f ➡\ufe0f ✔\ufe0f ⚠\ufe0f © ®\ufe0f ™\ufe0f \u2139\ufe0f",
    "Persian": "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "Hindi": "क्\u200dष",
    "Sinhala": "ක්\u200dය",
    "a variant of an ideograph": "葛\U000e0100城",
    "Hebrew with a mark": "\u200f\u05e9\u05dc\u05d5\u05dd (API)\u200f",
    "Thai": "ไทย\u200bครับ",
    "Mongolian": "ᠠ\u180bᠨ",
    "lines": "a\nb\r\n\tc",
    "lines of another kind": "a\u2028b",
    "Braille": "\u2801\u2800\u2802",
    "hieroglyphs": "\U00013000\U00013430\U00013001",
    "many emoji": "✔\ufe0f" * 40,
    "lines of Windows": "a\r\n\r\nb\r\n",
    "accents": "naïve café — “quoted” … ½ ≤ 3",
}
HIDDEN = {
    "tags": "Adds.\U000e0049\U000e0067",
    "tags behind a flag": "🏴\U000e0068\U000e0069\U000e007f",
    "an override": "abc\u202edef",
    "an isolate": "a\u2066b\u2069",
    "a mark where nothing is written from right to left": "a\u200fb",
    "marks in a row": "\u200f\u200f\u200fab",
    "an escape sequence": "\x1b[8mhidden\x1b[0m",
    "a text in place of another": "Deletes everything.\rReads a file.     ",
    "two carriage returns": "a\r\r\nb",
    "a C1 control": "a\x9b31mb",
    "a NUL": "a\0b",
    "DEL": "a\x7fb",
    "private use": "a\ue000b",
    "private use of another plane": "a\U000f1234b",
    "a selector behind a letter": "a\ufe0fb",
    "two selectors": "😀\ufe0f\ufe0e",
    "a message in selectors": "😀" + "".join(chr(0xE0100 + each) for each in b"ignore"),
    "a message in variants": "葛\U000e0101" * 12,
    "a blank without width": "pass\u200bword",
    "a joiner between letters": "pass\u200dword",
    "a joiner between emoji and a letter": "😀\u200dx",
    "bits of joiners": "م\u200c\u200d\u200c\u200dی",
    "a byte order mark": "\ufeffabc",
    "a soft hyphen": "ig\u00adnore",
    "a word joiner": "a\u2060b",
    "an invisible plus": "a\u2064b",
    "a filler": "a\u3164b",
    "a selector at the start": "\ufe0fa",
    "a tag behind a flag": "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f\U000e0073",
    "variants of symbols": "\u2713\ufe00" * 12,
    "a blank of Braille": "pass\u2800word",
    "a control of hieroglyphs": "a\U00013430b",
    "a filler of Khitan": "a\U00016fe4b",
    "an empty note": "a\U0001d159b",
    "an object that is not there": "a\ufffcb",
    "no character of another plane": "a\U0003ffffb",
}


@pytest.mark.scenario("changes: No real tool is taken for one that hides")
@pytest.mark.parametrize("case", HARMLESS)
def test_what_scripts_and_emoji_need_is_no_hidden_text(case: str) -> None:
    """Characters without width have a reason to be there."""
    assert find_hidden(HARMLESS[case]) is None


@pytest.mark.scenario("changes: Text that hides is refused whatever the policy")
@pytest.mark.parametrize("case", HIDDEN)
def test_what_hides_is_found(case: str) -> None:
    """It is refused wherever it stands in a definition, and a diff shows it."""
    text = HIDDEN[case]
    found = find_hidden(text)
    assert found is not None
    assert f"\\u{{{ord(text[found[0]]):x}}}" in reveal(text)
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    for definition in (
        {"name": "x", "description": text, "inputSchema": schema},
        {"name": "x", "title": text, "inputSchema": schema},
        {"name": f"x{text}", "inputSchema": schema},
        {"name": "x", "annotations": {"title": text}, "inputSchema": schema},
        {"name": "x", "_meta": {"a": text}, "inputSchema": schema},
        {"name": "x", "inputSchema": {"type": "object", "properties": {text: {}}}},
        {"name": "x", "inputSchema": {"type": "object", "properties": {"a": {"enum": ["b", text]}}}},
        {"name": "x", "inputSchema": {"type": "object", "properties": {"a": {"default": text}}}},
        {"name": "x", "inputSchema": schema, "outputSchema": {"type": "object", "description": text}},
    ):
        problem = tool_problem(definition)
        assert problem is not None
        assert "has hidden text" in problem
        assert '"unicode": "allow"' in problem
        assert tool_problem(definition, allows_hidden_text=True) is None


def test_bits_in_many_texts_are_found() -> None:
    """What is little in each of them is much in all."""
    properties = {f"a{number}": {"description": "葛\U000e0100城"} for number in range(12)}
    definition = {"name": "x", "inputSchema": {"type": "object", "properties": properties}}
    assert "more variation selectors" in str(tool_problem(definition))


def test_a_place_is_told_briefly() -> None:
    """Also where names are long, and nested."""
    value: Any = {"a\u200b" * 700: 1}
    for _ in range(100):
        value = {"n" * 1400: value, "x": {"m" * 1400: 1}}
    problem = explain_hidden_text({"inputSchema": value})
    assert problem is not None
    assert len(problem) < 500
    assert problem.startswith("a name in inputSchema.nnn")


def test_a_diff_shows_blanks_that_are_none() -> None:
    assert reveal("a\u00a0b\u2003c\u2028d e\u3000f") == "a\\u{a0}b\\u{2003}c\\u{2028}d e\u3000f"


def test_a_line_end_in_a_name_of_a_parameter_is_refused() -> None:
    """A description may have several lines; a name has one."""
    assert find_hidden("a\nb") is None
    problem = tool_problem({"name": "x", "inputSchema": {"type": "object", "properties": {"a\nb": {}}}})
    assert problem is not None
    assert "control character" in problem
