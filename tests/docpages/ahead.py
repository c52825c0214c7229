"""Commands that pages describe and that the command line does not have yet; a test says when one has come."""

from __future__ import annotations

COMMANDS_AHEAD: frozenset[str] = frozenset(
    {"add --from", "add-json", "completion", "import", "logs", "restart", "search", "service", "status"}
)


def is_ahead(words: list[str]) -> bool:
    """Whether a command begins with one of them."""
    return not COMMANDS_AHEAD.isdisjoint({words[0], " ".join(words[:2])} if words else ())
