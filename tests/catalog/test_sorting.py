"""Sorting in small steps gives what sorting at once gives."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.catalog import sorting as module
from pegboard.catalog.registry import ToolRegistry
from pegboard.catalog.sorting import sorting
from stepping import outcome


@given(st.lists(st.text(), max_size=50), st.integers(1, 7))
def test_what_is_sorted_in_steps_is_sorted(items: list[str], run: int) -> None:
    """However many, however long the runs that are merged."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_RUN", run)
        assert outcome(sorting(items))[0] == sorted(items)


def test_no_step_sorts_many() -> None:
    """The names of 10,000 tools take many steps; so nobody on the loop waits for all of them."""
    assert outcome(sorting(map(str, range(10_000))))[1] > 5


def test_tools_are_sorted_as_they_were_when_it_began() -> None:
    """A change meanwhile is in the next list; and what was sorted in vain is not kept."""
    registry = ToolRegistry()
    offer(registry, "b", "a")
    steps = registry.sorting()
    offer(registry, "c", "a")
    assert [tool.name for tool in outcome(steps)[0]] == ["s__a", "s__b"]
    assert [tool.name for tool in registry.all()] == ["s__a", "s__c"]
    steps = registry.sorting()
    assert [tool.name for tool in outcome(steps)[0]] == ["s__a", "s__c"]
    offer(registry, "d", "a", "0")
    steps = registry.sorting()
    list(islice(steps, 1))
    offer(registry, "e")
    outcome(steps)
    assert [tool.name for tool in registry.all()] == ["s__e"]


def offer(registry: ToolRegistry, *names: str) -> None:
    registry.register_mcp_tools("s", [{"name": name, "inputSchema": {"type": "object"}} for name in names])
