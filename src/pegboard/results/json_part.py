"""The text of a result that is JSON: where it stands among all texts, and what of it is most."""

from __future__ import annotations

from dataclasses import dataclass, field

from pegboard.results.contents import BETWEEN, ResultTexts
from pegboard.results.path import write_path
from pegboard.results.records import LongText, Records, find_long_text, find_records, is_json

# Records are at least this part of a JSON text.
_LEAST_PART = 4
_LONGEST_PATH = 500


@dataclass(frozen=True, slots=True)
class JsonPart:
    """A text of a result that is JSON: where it stands among all texts, its records, if it has some, and the string in
    it that is most of it, if there is one."""

    start: int
    end: int
    number: int
    data: bytes = field(repr=False)
    records: Records | None = field(default=None, repr=False)
    long_text: LongText | None = field(default=None, repr=False)

    @property
    def path(self) -> str:
        """Where the records stand."""
        return write_path(self.records.path) if self.records is not None else ""


def find_json(texts: ResultTexts) -> JsonPart | None:
    """The longest text of a result, if that is JSON and most of it all."""
    if not texts.parts:
        return None
    number = max(range(len(texts.parts)), key=lambda each: len(texts.parts[each].text))
    text = texts.parts[number].text
    if len(text) * 2 < texts.characters:
        return None
    data = text.encode("utf-8", "surrogatepass")
    if not is_json(data):
        return None
    start = sum(len(part.text) + len(BETWEEN) for part in texts.parts[:number])
    records, long_text = find_records(data), None
    if records is None or not records.are_balanced or records.size * 3 < len(data):
        long_text = find_long_text(data)
    is_within = records is not None and long_text is not None and long_text.path[: len(records.path)] == records.path
    if records is not None and records.size * _LEAST_PART < len(data) and not is_within:
        # A few words beside all the rest are not what somebody asked for.
        records = None
    # Nobody could write a longer path.
    if records is not None and len(write_path(records.path)) > _LONGEST_PATH:
        records = None
    if long_text is not None and len(write_path(long_text.path)) > _LONGEST_PATH:
        long_text = None
    return JsonPart(start, start + len(text), number, data, records, long_text)
