"""Numerals: the exact number that a value is, also where it is written as a text, as prices often are (`"4.50"`)."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any

from pegboard.exactjson import Number

Amount = int | Decimal
_NUMERAL = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def read_amount(value: Any) -> Amount | None:
    """The number; `None` for what is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return _read_digits(value.digits if isinstance(value, Number) else repr(value))
    if isinstance(value, str) and _NUMERAL.fullmatch(stripped := value.strip()) is not None:
        return _read_digits(stripped)
    return None


def _read_digits(digits: str) -> Decimal | None:
    try:
        return Decimal(digits)
    except InvalidOperation:
        # An exponent of more digits than anybody computes with.
        return None
