"""A filter of records by conditions. A condition that can hold for none of them, because no record has its field or
because its values are of another kind, is refused: no records would look like an answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pegboard import exactjson
from pegboard.result import ToolFailure, invalid
from pegboard.results.condition import Condition
from pegboard.results.fields import FieldSearch, refuse_field
from pegboard.text import quote_start

_SHOWN = 60


class _Check:
    """Whether one condition is about something that the records have."""

    def __init__(self, condition: Condition) -> None:
        self._condition = condition
        self._field = FieldSearch(condition.field, condition.steps)
        self._is_ordered = False
        self._other: Any = None

    @property
    def is_settled(self) -> bool:
        """Whether no further record has to be looked at."""
        return self._field.is_found and (self._is_ordered or not self._condition.is_of_order)

    def look(self, record: Any) -> None:
        """Look at one more record."""
        condition = self._condition
        self._field.look(record)
        if condition.is_of_order and (ordered := condition.orders(record)) is not None:
            self._is_ordered = self._is_ordered or ordered
            if not ordered and self._other is None:
                self._other = condition.sample(record)

    def refusal(self, records: Sequence[Any]) -> ToolFailure | None:
        """What is wrong with the condition, if anything is."""
        if self._field.is_missing:
            return refuse_field("where", self._field.name, records)
        if self._condition.is_of_order and not self._is_ordered and self._other is not None:
            return invalid(f"where: {_explain(self._condition, self._other)}")
        return None


def filter_records(records: Sequence[Any], conditions: Sequence[Condition]) -> list[int]:
    """The numbers of the records for which all conditions hold; `ToolFailure` where one can hold for none."""
    checks = [_Check(condition) for condition in conditions]
    open_checks, chosen = list(checks), list[int]()
    for number, record in enumerate(records):
        for check in open_checks:
            check.look(record)
        if any(check.is_settled for check in open_checks):
            open_checks = [check for check in open_checks if not check.is_settled]
        if all(condition.holds(record) for condition in conditions):
            chosen.append(number)
    if records:
        refuse_first(check.refusal(records) for check in open_checks)
    return chosen


def explain_nothing(records: Sequence[Any], conditions: Sequence[Condition]) -> str:
    """What there is to say where no record was found: that a text is there in other letters; empty for nothing."""
    left = dict(enumerate(conditions))
    near: dict[int, str] = {}
    for record in records:
        left = {number: condition for number, condition in left.items() if not condition.holds(record)}
        for number in left.keys() - near.keys():
            if (text := left[number].nearly_holds(record)) is not None:
                near[number] = text
    number = min(left.keys() & near.keys(), default=None)
    if number is None:
        return ""
    what = f"{quote_start(left[number].field, _SHOWN)} = {quote_start(near[number], _SHOWN)}".lstrip()
    return f"= is exact, also in the case of letters: there is {what}"


def refuse_first(refusals: Iterable[ToolFailure | None]) -> None:
    """Raise the first of these that is one."""
    if (first := next((refusal for refusal in refusals if refusal is not None), None)) is not None:
        raise first


def _explain(condition: Condition, other: Any) -> str:
    """Why nothing can be less or greater: what the values are, and how to write it."""
    shown = quote_start(exactjson.dump(other).decode(), _SHOWN)
    what = f'"{quote_start(condition.field, _SHOWN)}"' if condition.field else "a record"
    if isinstance(other, str) and condition.amount is not None:
        wanted = f"{condition.field} {condition.operator} '{condition.word}'".strip()
        return f"{what} is a text that is no number, such as {shown}; to compare texts, write {wanted}"
    if isinstance(other, int | float) and not isinstance(other, bool):
        return f"{what} is a number, such as {shown}; write the number to compare with, without quotes"
    return f"{what} is neither a number nor a text, such as {shown}: only those are less or greater than others"
