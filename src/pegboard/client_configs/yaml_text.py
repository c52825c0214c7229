"""YAML as clients write it: plain data, with the line of each part; nothing is built from tags."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    Event,
    MappingStartEvent,
    ScalarEvent,
)

from pegboard.client_configs.reading import Steps, UnreadableText

# The parser in C, where PyYAML has it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MOST_CHARACTERS, _MOST_DEPTH = 1_000_000, 100
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off"), False),
    **dict.fromkeys(("null", "~", ""), None),
}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"[-+]?[0-9]{1,17}\.[0-9]{1,17}")


@dataclass(slots=True)
class _Collection:
    """A map or a list that is being read."""

    value: dict[str, Any] | list[Any]
    path: Steps
    key: str | None = None

    def add(self, item: Any) -> None:
        if isinstance(self.value, list):
            self.value.append(item)
        elif self.key is not None:
            self.value[self.key] = item
            self.key = None

    def next_path(self) -> Steps:
        step = len(self.value) if isinstance(self.value, list) else self.key
        return self.path if step is None else (*self.path, step)


@dataclass(slots=True)
class _Builder:
    lines: dict[Steps, int] = field(default_factory=dict[Steps, int])
    open: list[_Collection] = field(default_factory=list[_Collection])
    root: Any = None

    def take(self, event: Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, AliasEvent) or getattr(event, "anchor", None):
            raise UnreadableText("anchors and aliases (& and *) are not read: write the values out", line)
        if isinstance(event, ScalarEvent) and self._wants_key():
            self._set_key(event.value, line)
        elif isinstance(event, ScalarEvent):
            self._note_line(line)
            self._add(self._scalar(event))
        elif isinstance(event, CollectionStartEvent):
            self._note_line(line)
            self._enter(event, line)
        elif isinstance(event, CollectionEndEvent):
            self._add(self.open.pop().value)

    def _wants_key(self) -> bool:
        return bool(self.open) and isinstance(self.open[-1].value, dict) and self.open[-1].key is None

    def _set_key(self, key: str, line: int) -> None:
        """The line of a key is that of its value, which may begin further down."""
        collection = self.open[-1]
        if key in collection.value:
            raise UnreadableText(f'the key "{key}" stands twice', line)
        collection.key = key
        self.lines[*collection.path, key] = line

    def _note_line(self, line: int) -> None:
        path = self.open[-1].next_path() if self.open else ()
        self.lines.setdefault(path, line)

    def _enter(self, event: CollectionStartEvent, line: int) -> None:
        if len(self.open) >= _MOST_DEPTH:
            raise UnreadableText(f"more than {_MOST_DEPTH} levels of nesting", line)
        path = self.open[-1].next_path() if self.open else ()
        self.open.append(_Collection({} if isinstance(event, MappingStartEvent) else [], path))

    def _add(self, item: Any) -> None:
        if self._wants_key():
            raise UnreadableText("a key that is no text", self.lines.get(self.open[-1].path, 1))
        if self.open:
            self.open[-1].add(item)
        else:
            self.root = item

    def _scalar(self, event: ScalarEvent) -> Any:
        """A word without quotes may be a number or one of a few words; all else is text."""
        word: str = event.value
        if not event.implicit[0] or event.tag is not None:
            return word
        if word.lower() in _WORDS:
            return _WORDS[word.lower()]
        if _INTEGER.fullmatch(word):
            return int(word)
        return float(word) if _DECIMAL.fullmatch(word) else word


def parse_yaml(text: str) -> tuple[Any, dict[Steps, int]]:
    """The value of a YAML text and the line of each part of it; raises `UnreadableText`."""
    if len(text) > _MOST_CHARACTERS:
        raise UnreadableText(f"YAML of more than {_MOST_CHARACTERS:,} characters is not read")
    builder = _Builder()
    try:
        events = cast("Iterable[Event]", yaml.parse(text, Loader=_LOADER))  # pyright: ignore[reportUnknownMemberType]
        for event in events:
            builder.take(event)
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        raise UnreadableText(f"not YAML: {exc.problem or exc.context or 'it cannot be parsed'}", line) from None
    except yaml.YAMLError:
        raise UnreadableText("not YAML: it has a character that YAML does not allow") from None
    return builder.root, builder.lines
