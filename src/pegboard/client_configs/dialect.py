"""A dialect: what the same words mean in one client's config: units of time, and how variables are written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from pegboard.client_configs.program import ClientProgram

# Without a unit that is known, a number from here on is one of milliseconds.
_LEAST_MILLISECONDS = 1000


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one client writes its entries."""

    unit: Literal["s", "ms", "guess"] = "guess"
    # Its `timeout` is for the start of a server, and not for a call.
    times_start: bool = False
    # `$X` and `%X%` are variables wherever they stand; else only where a value is nothing else.
    dollar: bool = False
    # `{env:X}` is a variable.
    curly: bool = False
    # `${X}` is plain text to this client.
    is_literal: bool = False
    # Which key has the address, if there are several.
    url_first: str = "url"

    def seconds(self, number: float) -> float:
        """A length of time in seconds."""
        is_milliseconds = self.unit == "ms" or (self.unit == "guess" and number >= _LEAST_MILLISECONDS)
        seconds = number / 1000 if is_milliseconds else number
        return int(seconds) if seconds == int(seconds) else seconds


_PLAIN = Dialect(is_literal=True)
_SECONDS = Dialect("s")
_GEMINI = Dialect(dollar=True, url_first="httpUrl")
_OPENCODE = Dialect("ms", times_start=True, curly=True, is_literal=True)

# What is particular about variables; the unit of time is in the table of clients.
_BY_CLIENT = {
    **dict.fromkeys(("claude-desktop", "lm-studio", "zed", "cline", "goose"), _PLAIN),
    "codex": replace(_PLAIN, unit="s"),
    **dict.fromkeys(("gemini", "qwen"), _GEMINI),
    "copilot": Dialect(dollar=True),
    "crush": Dialect("s", dollar=True),
    **dict.fromkeys(("opencode", "kilo"), _OPENCODE),
}
# What a section of a text is in, if nobody says whose it is. There `${X}` is what its author meant: a variable.
_BY_SECTION = {
    "context_servers": _SECONDS,
    "extensions": _SECONDS,
    "mcp_servers": _SECONDS,
    "mcp": replace(_OPENCODE, is_literal=False),
    "pegboard": _SECONDS,
}


def dialect_of(client: ClientProgram | None, section: str) -> Dialect:
    """The dialect of a client's file, or else of a section of a text."""
    if client is None:
        return _BY_SECTION.get(section, Dialect(curly=True))
    known = _BY_CLIENT.get(client.id, Dialect())
    return replace(known, unit=client.timeout_unit) if client.timeout_unit else known
