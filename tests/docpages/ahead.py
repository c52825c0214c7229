"""Commands and messages that pages describe and that the program does not have yet; a test says when one has come."""

from __future__ import annotations

COMMANDS_AHEAD: frozenset[str] = frozenset(
    {"add --from", "add-json", "completion", "import", "logs", "restart", "search", "service", "status"}
)
# The same for messages.
MESSAGES_AHEAD: frozenset[str] = frozenset(
    {
        "wants a sign-in with OAuth",
        "To take its servers over, run: pegboard import",
        "is the entry of one server, without a name",
        "… is in … all the same. To ask it again: …",
        "is … an option of Pegboard or of the command? Type one of these:",
        "no gateway runs with …, and …",
        "the service was started, but no gateway answers yet. See: …",
        "… has no argument …: …It takes ….",
        "nothing was written: there is nobody to ask. Add --yes to write it, or --dry-run.",
        'there are no servers in it: expected "mcpServers", another client\'s section, or an entry with "command"',
        "… means nothing outside of its editor: replace it",
        "the registry has no server …",
        "it cannot be added:…",
    }
)


def is_ahead(words: list[str]) -> bool:
    """Whether a command begins with one of them."""
    return not COMMANDS_AHEAD.isdisjoint({words[0], " ".join(words[:2])} if words else ())
