"""Reads typed values out of a parsed config file and says exactly where one is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from pegboard.config.aliases import ALL_ALIASES
from pegboard.config.jsonc import JsoncDocument
from pegboard.config.settings import ConfigError
from pegboard.text import json_path

# What stands there, or below, may be secret: it is not repeated.
_SECRET_PLACES = frozenset({"args", "env", "headers", "url", "storage"}) | ALL_ALIASES
_KINDS = {dict: "an object", list: "a list", str: "a text", type(None): "null"}


@dataclass(frozen=True, slots=True)
class ConfigNode:
    """A place in the config file: its value, and the path that leads there."""

    document: JsoncDocument
    file: Path
    path: tuple[str | int, ...]
    value: Any

    @property
    def place(self) -> str:
        """File, line and column."""
        line, column = self.document.place(self.path)
        return f"{self.file}:{line}:{column}"

    def wrong(self, reason: str) -> ConfigError:
        """The error of a value that cannot be used, with file, place and reason."""
        where = json_path(self.path) or "the file"
        return ConfigError(f"{self.place}: {where} {reason}")

    def mismatch(self, what: str) -> ConfigError:
        """The error of a value of the wrong kind."""
        return self.wrong(f"must be {what}, found {self._describe_value()}")

    def get(self, key: str) -> ConfigNode | None:
        """The member of that name; a member that is null counts as left out."""
        value = self.members().get(key)
        return None if value is None else ConfigNode(self.document, self.file, (*self.path, key), value)

    def members(self) -> Mapping[str, Any]:
        """The value as an object."""
        if not isinstance(self.value, dict):
            raise self.mismatch("an object")
        return cast("dict[str, Any]", self.value)

    def children(self) -> list[ConfigNode]:
        """The members of an object, in the order of the file."""
        return [ConfigNode(self.document, self.file, (*self.path, key), value) for key, value in self.members().items()]

    def items(self) -> list[ConfigNode]:
        """The items of a list."""
        if not isinstance(self.value, list):
            raise self.mismatch("a list")
        items = cast("list[Any]", self.value)
        return [ConfigNode(self.document, self.file, (*self.path, at), item) for at, item in enumerate(items)]

    def child(self, step: str | int) -> ConfigNode | None:
        """What stands one step below, if anything does."""
        is_list = isinstance(self.value, list)
        inner = self.items() if is_list else self.children() if isinstance(self.value, dict) else []
        return next((node for node in inner if node.path[-1] == step), None)

    @property
    def key(self) -> str:
        """The last step of the path."""
        return str(self.path[-1])

    def text(self) -> str:
        """The value as a text."""
        if not isinstance(self.value, str):
            raise self.mismatch("a text")
        return self.value

    def flag(self) -> bool:
        """The value as true or false."""
        if not isinstance(self.value, bool):
            raise self.mismatch("true or false")
        return self.value

    def seconds(self, *, zero: bool = False) -> float:
        """The value as a length of time; zero only where it means something."""
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            raise self.mismatch("a number of seconds")
        if self.value < 0 or (self.value == 0 and not zero) or self.value > 10_000_000:
            raise self.wrong(f"must be a positive number of seconds, found {self._describe_value()}")
        return float(self.value)

    def whole_number(self, low: int, high: int, *, besides: str = "") -> int:
        """The value as a whole number within bounds; `besides` are words for what else it may be."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.mismatch("a whole number")
        if not low <= self.value <= high:
            raise self.wrong(f"must be between {low} and {high}{besides}, found {self._describe_value()}")
        return self.value

    def texts(self) -> tuple[str, ...]:
        """The value as a list of texts."""
        if not isinstance(self.value, list):
            raise self.mismatch("a list of texts")
        return tuple(item.text() for item in self.items())

    def scalars(self) -> dict[str, str]:
        """The value as an object of texts; numbers and booleans are taken as their text, as clients do.

        A null counts as left out: VS Code writes one for a variable that shall not be set.
        """
        return {child.key: child.scalar() for child in self.children() if child.value is not None}

    def scalar(self) -> str:
        """The value as a text, from a text, a number or a boolean."""
        if isinstance(self.value, bool):
            return "true" if self.value else "false"
        if isinstance(self.value, (int, float)):
            return _digits(self.value)
        return self.text()

    def one_of(self, *choices: str) -> str:
        """The value as one of the given words."""
        if self.value not in choices:
            raise self.wrong(f"must be one of {', '.join(choices)}, found {self._describe_value()}")
        return cast("str", self.value)

    def _describe_value(self) -> str:
        """What stands there, as far as it may be shown."""
        if isinstance(self.value, str) and not _SECRET_PLACES.isdisjoint(map(str, self.path)):
            return "a text"
        return _kind(self.value)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 40 else "a text"
    if isinstance(value, (int, float)):
        return digits if len(digits := _digits(value)) <= 40 else "a very long number"
    return _KINDS.get(cast("type[Any]", type(value)), "something else")


def _digits(value: float) -> str:
    # str() refuses whole numbers of more than 4,300 digits; JSON does not.
    return f"{Decimal(value):f}" if isinstance(value, int) else str(value)
