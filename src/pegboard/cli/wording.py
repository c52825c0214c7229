"""Messages for people. The gateway speaks to agents in the names of their tools; here they become commands."""

from __future__ import annotations

import re

from pegboard.cli.program import with_program

# What the gateway says, and what a person at a shell is told instead.
_PHRASES = {
    "Use tool_find to search for tools.": "`pegboard find WORDS` searches for tools.",
    "use memory_update, or replace: true": "use --replace, or `pegboard memory update`",
    "memory_search finds others": "`pegboard memory search WORDS` finds others",
    "registry_sync, then look for": "run `pegboard tasks sync`, then look for",
    "with registry_list": "with `pegboard tasks list`",
    "registry_sync and registry_list show how it is": "`pegboard tasks sync` and `pegboard tasks list` show how it is",
    "Your client names none, and there": "There",
    "give path, or set workspace in the config": "go to the project's folder, or give --path",
}
_WANTS_SIGN_IN = re.compile(r"\bwants a sign-in: pegboard login \w+")
_MAY_SIGN_IN = re.compile(r"\bwants (?:a sign-in|credentials)\b.*: pegboard login \w+")
_DISABLED = re.compile(r"server (\w+) is disabled$")


def wants_sign_in(message: str) -> bool:
    """Whether a server is said to wait for somebody who signs in to it."""
    return _WANTS_SIGN_IN.search(message) is not None


def may_sign_in(message: str) -> bool:
    """The same, or that it wants credentials and may have a sign-in, of which it says nothing."""
    return _MAY_SIGN_IN.search(message) is not None


def for_people(message: str) -> str:
    """A message of the gateway in the words of commands."""
    for said, meant in _PHRASES.items():
        message = message.replace(said, meant)
    return with_program(_DISABLED.sub(r"server \1 is disabled: `pegboard enable \1` enables it", message))
