"""Conditions on records: `field op value`, joined by `and`: `state = open and comments > 10`."""

from __future__ import annotations

import operator as op
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pegboard import exactjson
from pegboard.exactjson import as_list, as_object
from pegboard.result import ToolFailure, invalid
from pegboard.results.numerals import Amount, read_amount
from pegboard.results.path import Step, parse_path, values_at
from pegboard.results.words import fold
from pegboard.text import quote_start

_MOST = 20
_SHOWN = 60
_OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "contains")
_COMPARED = {*_OPERATORS, "=="}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge}
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\'[^\']*\'|==|!=|<=|>=|=|<|>|[^\s=<>!"\']+)')


@dataclass(frozen=True, slots=True)
class Condition:
    """One of them."""

    # What is compared, as it was written; empty for the record itself.
    field: str
    steps: tuple[Step, ...]
    operator: str
    value: Any
    # Whether the value was a plain word, which is compared as a text as well.
    word: str | None
    # The number that the value is, unless it has quotes.
    amount: Amount | None = None

    def holds(self, record: Any) -> bool:
        """Whether a record is so; where its field is a list, one item is enough, save for `!=`."""
        found = self._values(record)
        if self.operator == "!=":
            return not any(self._is_equal(value) for value in found)
        return any(self._fits(value) for value in found)

    def nearly_holds(self, record: Any) -> str | None:
        """A text of a record that is the wanted one but for the case of its letters, where `=` wants one."""
        wanted = self.word if self.word is not None else self.value
        if self.operator != "=" or not isinstance(wanted, str):
            return None
        texts = (value for value in self._values(record) if isinstance(value, str) and len(value) == len(wanted))
        return next((text for text in texts if fold(text) == fold(wanted)), None)

    def orders(self, record: Any) -> bool | None:
        """Whether a value of a record can be less or greater than the wanted one; `None` if there is no value."""
        found = [value for value in self._values(record) if value is not None]
        return any(map(self._is_comparable, found)) if found else None

    @property
    def is_of_order(self) -> bool:
        """Whether it wants something less or greater."""
        return self.operator in _COMPARISONS

    def sample(self, record: Any) -> Any:
        """One of the values that it looks at."""
        return next((value for value in self._values(record) if value is not None), None)

    def _values(self, record: Any) -> list[Any]:
        found = values_at(record, self.steps)
        return found if self.operator == "contains" else [item for value in found for item in _items(value)]

    def _fits(self, value: Any) -> bool:
        if self.operator == "=":
            return self._is_equal(value)
        if self.operator == "contains":
            return self._is_in(value)
        if not self._is_comparable(value):
            return False
        if self.amount is not None:
            return _COMPARISONS[self.operator](read_amount(value), self.amount)
        return _COMPARISONS[self.operator](value, self.value)

    def _is_comparable(self, value: Any) -> bool:
        """Numbers with numbers, also with those that are texts; any other text with texts."""
        if self.amount is not None:
            return read_amount(value) is not None
        return isinstance(value, str) and isinstance(self.value, str)

    def _is_equal(self, value: Any) -> bool:
        if self.amount is not None and (amount := read_amount(value)) is not None:
            return amount == self.amount
        return _is_same(value, self.value) or (self.word is not None and value == self.word)

    def _is_in(self, value: Any) -> bool:
        """Whether a text is in one of the texts of a value, or the value itself is there, at any depth."""
        wanted = self.word if self.word is not None else self.value
        part = wanted.lower() if isinstance(wanted, str) else None
        left = [value]
        while left:
            each = left.pop()
            if isinstance(each, str) and part is not None:
                if part in each.lower():
                    return True
            elif (inner := _inner(each)) is not None:
                left += inner
            elif self._is_equal(each):
                return True
        return False


def parse_conditions(text: str) -> list[Condition]:
    """What `where` says; `ToolFailure` where it cannot be read."""
    tokens = _tokens(text)
    conditions: list[Condition] = []
    while tokens:
        if tokens[0] in _COMPARED and not (tokens[1:2] and tokens[1] in _COMPARED):
            # Without a field, the records themselves are compared.
            tokens = ["", *tokens]
        field, operator, value, *tokens = [*tokens[:3], *([""] * (3 - len(tokens[:3]))), *tokens[3:]]
        if not operator:
            raise _wrong(text, f'after "{field}" stands no operator')
        if operator not in _COMPARED:
            raise _wrong(text, f'"{quote_start(operator, _SHOWN)}" is no operator')
        if not value:
            raise _wrong(text, f'after "{operator}" stands no value')
        conditions.append(_condition(text, field, operator, value))
        if tokens and tokens.pop(0).lower() != "and":
            raise _wrong(text, f'after "{quote_start(value, _SHOWN)}" stands no "and"; a value with blanks has quotes')
        if len(conditions) > _MOST:
            raise invalid(f"where: more than {_MOST} conditions")
    if not conditions:
        raise _wrong(text, "it is empty")
    return conditions


def _condition(text: str, field: str, operator: str, value: str) -> Condition:
    try:
        steps = parse_path(_unquote(field))
    except ToolFailure as exc:
        raise _wrong(text, str(exc)) from None
    wanted, word = _read_value(text, value)
    amount = None if word is None or isinstance(wanted, str) else read_amount(wanted)
    return Condition(_unquote(field), steps, "=" if operator == "==" else operator, wanted, word, amount)


def _read_value(text: str, value: str) -> tuple[Any, str | None]:
    if value.startswith("'"):
        return value[1:-1], None
    try:
        read = exactjson.parse(value)
    except exactjson.NotJson:
        if value.startswith('"'):
            raise _wrong(text, f"{quote_start(value, _SHOWN)} is no text as JSON has it") from None
        return value, value
    return read, None if value.startswith('"') else value


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            raise _wrong(text, f'it cannot be read from "{quote_start(text[at:].strip(), _SHOWN)}" on')
        tokens.append(found[1])
        at = found.end()
    return tokens


def _unquote(field: str) -> str:
    return field[1:-1] if field[:1] in {'"', "'"} else field


def _wrong(text: str, problem: str) -> ToolFailure:
    forms = f"write FIELD OPERATOR VALUE, with {', '.join(_OPERATORS)}, joined by and"
    return invalid(f'where "{quote_start(text, 2 * _SHOWN)}": {problem}; {forms}')


def _items(value: Any) -> list[Any]:
    items = as_list(value)
    return [value] if items is None else items


def _is_same(one: Any, other: Any) -> bool:
    # For Python, true is 1.
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _inner(value: Any) -> list[Any] | None:
    """What is in a list or an object; `None` for anything else."""
    members = as_object(value)
    return as_list(value) if members is None else list(members.values())
