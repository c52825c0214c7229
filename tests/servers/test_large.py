"""Values of a large message are counted before it is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.servers import large
from pegboard.servers.large import fault

VALUES = st.recursive(
    st.none() | st.integers() | st.text(alphabet='a",[]{}:\\é\n'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='a",[\\'), inner),
    max_leaves=30,
)


def _count(value: Any) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    own = 1 + max(len(inner) - 1, 0) if isinstance(value, (dict, list)) else 0
    return own + sum(map(_count, inner))


def _refused(text: bytes, most: int = large.MAX_VALUES) -> bool:
    steps = fault(text, most)
    while True:
        try:
            next(steps)
        except StopIteration as over:
            return over.value is not None


@given(VALUES, st.integers(1, 9))
def test_values_are_counted_exactly_however_they_are_cut(value: Any, portion: int) -> None:
    """Strings may hold brackets, commas, quotes and backslashes: they do not count."""
    text, count = json.dumps(value, ensure_ascii=False).encode(), _count(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "_PORTION", portion)
        assert not _refused(text, count)
        assert _refused(text, count - 1)


@given(st.binary(max_size=40), st.integers(1, 9))
def test_a_text_that_is_no_utf_8_is_found_however_it_is_cut(data: bytes, portion: int) -> None:
    """A character may stand on both sides of a cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "_PORTION", portion)
        assert _refused(data) == (data.decode(errors="replace").encode() != data)
