"""What a saved memory says of its past."""

from __future__ import annotations

import pytest

from pegboard.result import ToolFailure
from pegboard.toolsets.memory.saved import History


def test_what_is_left_out_is_as_in_a_new_memory() -> None:
    """And what is there is taken, down to the least that is possible."""
    assert History.read({}, 5.0) == History.new(5.0)
    least = History.read({"version": 1, "access_count": 0, "traverse_count": 0}, 5.0)
    assert (least.version, least.access_count, least.traverse_count) == (1, 0, 0)


@pytest.mark.parametrize(("name", "value"), [("version", 0), ("access_count", -1), ("traverse_count", -1)])
def test_less_than_possible_is_refused_by_name(name: str, value: int) -> None:
    """A memory cannot have been read less often than never."""
    with pytest.raises((ToolFailure, ValueError), match=name):
        History.read({name: value}, 5.0)
