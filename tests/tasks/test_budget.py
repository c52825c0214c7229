"""How much of a text there is room for."""

from __future__ import annotations

from pegboard.toolsets.tasks.budget import truncate


def test_a_text_is_cut_where_the_room_ends() -> None:
    """What is written just fits, quotation marks included; what fits as a whole stays whole."""
    assert truncate("a" * 8, 8) == "a" * 8
    assert truncate("a" * 12, 8) == "a" * 6 + "…"
    assert truncate("a", 100) == "a"
