"""Servers that are still starting, in the words for whoever asks: what a model does not find may yet come."""

from __future__ import annotations

from collections.abc import Sequence

# Where a list of tools names them, in its `_meta`.
STARTING_KEY = "pegboard/starting"
_MOST_NAMED = 10


def starting_text(names: Sequence[str]) -> str:
    """What to say of servers whose tools are not known yet."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return (
        f"Still starting: {', '.join(names[:_MOST_NAMED])}{more}. "
        "Their tools are not known yet, so look again in a few seconds."
    )
