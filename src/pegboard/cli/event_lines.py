"""The log of `serve` for the person at its terminal: one short line for each call, and for what changes about servers.

Events that say nothing to this person are left out; `PEGBOARD_LOG` shows all of them.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from pegboard.cli.common import without_name
from pegboard.cli.event_words import sentence_for
from pegboard.cli.program import command_for, with_program
from pegboard.cli.show import one_line, wrap_words
from pegboard.cli.wording import wants_sign_in

Event = Mapping[str, Any]

_RED, _YELLOW, _GREEN, _GREY = "31", "33", "32", "90"
# What a person who looks on has no use for, or sees in another line.
_UNSAID = frozenset(
    {
        *("tools.registry.updated", "tools.registry.server.removed", "tools.discovery.started"),
        *("toolsets.registered", "server.idle", "server.level.refused", "catalog.kind.failed", "audit.head"),
    }
)
_REGISTERED = "MCP tool registered: "
_PLAIN_FIELDS = frozenset({"event", "level", "time", "traceId"})
# Of what a server wrote before it ended.
_MOST_SAID = 3
_ERROR = re.compile(r"\b\w*(?:Error|Exception)\b")
_SAID, _BETWEEN = "; it said: ", " | "
# Why somebody was not let in, for people.
_REASONS = {
    "no_credentials": "no token",
    "invalid_token": "bad token",
    "expired": "expired token",
    "removed": "removed token",
    "invalid": "a token that cannot be used",
    "invalid_request": "a token that cannot be read",
    "insufficient_scope": "scopes are missing",
    "forbidden": "not allowed",
    "limit": "too many bad tokens",
}
_LONGEST_NAME = 60
_INDENT = " " * 10
_LEAST_WIDTH = 30


class EventLines:
    """Makes a line of an event, or `None`. It knows what it has said of each server, and says nothing twice."""

    def __init__(self, *, coloured: bool | None = None, width: Callable[[], int] | None = None) -> None:
        self._coloured = _is_coloured() if coloured is None else coloured
        self._width = width or (lambda: shutil.get_terminal_size().columns)
        self._is_ready = False
        # What was last said of a server, and who is yet to be asked for the first time.
        self._said: dict[str, str] = {}
        self._unasked: set[str] = set()
        self._asked: dict[str, bool] = {}
        self._remarks: set[str] = set()
        self._by_event: dict[str, Callable[[Event], str | None]] = {
            "tool.called": self._call,
            "tools.discovery.server.success": self._on_success,
            "tools.discovery.server.failed": self._on_failure,
            "server.connect.failed": self._on_failure,
            "server.needs_sign_in": self._on_failure,
            "server.lost": self._on_lost,
            "server.connected": self._on_connected,
            "config.server.invalid": self._on_invalid,
            "config.reloaded": lambda event: f"the config file was read again: {_count_servers(event['serverCount'])}",
            "config.reload.refused": self._on_refused,
            "config.reload.failed": self._on_refused,
            "access.refused": self._on_access_refused,
            "config.remark": self._on_remark,
            "rule.remark": lambda event: f"{event['about']}  {self._colour('remark', _YELLOW)}: {event['remark']}",
            "tools.registry.conflict": self._on_left_out,
            "tools.schema.invalid": self._on_left_out,
            "tools.duplicate": self._on_left_out,
            "catalog.list.cut": lambda event: f"{event['serverName']}  {one_line(str(event['reason']))}",
        }

    def begin(self, unasked: Iterable[str]) -> None:
        """The table of servers has been shown. These were never asked for their tools; once all are, that is said."""
        self._is_ready = True
        self._unasked = set(unasked)

    def __call__(self, event: Event) -> str | None:
        """The line, or lines, of an event."""
        name = str(event["event"])
        if name in _UNSAID or name.startswith(_REGISTERED):
            return None
        text = self._by_event[name](event) if name in self._by_event else self._say(event)
        if text is None:
            return None
        time = self._colour(datetime.now().astimezone().strftime("%H:%M:%S"), _GREY)
        return f"{time}  {text}"

    def _say(self, event: Event) -> str:
        login = command_for("login", str(event.get("server", "SERVER")))
        said = sentence_for(event, login)
        if said is None:
            return _generic(event)
        # The next thing that is said of this server is news again.
        self._said.pop(str(event.get("server")), None)
        room = max(self._width() - len(_INDENT), _LEAST_WIDTH)
        return f"\n{_INDENT}".join(wrap_words(said, room))

    def _call(self, event: Event) -> str:
        outcome = str(event["outcome"])
        colour = _GREEN if outcome == "ok" else _YELLOW if outcome in {"cancelled", "input_required"} else _RED
        client = one_line(str(event["client"])) or "-"
        if principal := event.get("principal"):
            client = f"{one_line(str(principal), _LONGEST_NAME)} via {client}"
        return f"{client}  {one_line(str(event['tool']))}  {event['ms']:.0f} ms  {self._colour(outcome, colour)}"

    def _on_access_refused(self, event: Event) -> str:
        reason = str(event.get("reason", ""))
        words = [str(event["address"]), one_line(str(event.get("principal", "")), _LONGEST_NAME)]
        words += [_REASONS.get(reason, reason.replace("_", " "))]
        count = f"({event['count']} in the last minute)" if event["count"] > 1 else ""
        return "  ".join(filter(None, [self._colour("refused", _YELLOW), *words, count]))

    def _on_success(self, event: Event) -> str | None:
        name, count = str(event["serverName"]), event["toolCount"]
        return self._state(name, self._colour("ready", _GREEN) + f", {count} tool{'' if count == 1 else 's'}", ok=True)

    def _on_failure(self, event: Event) -> str | None:
        name = str(event.get("serverName") or event["server"])
        reason = without_name(str(event.get("errorMessage") or event["reason"]), name)
        if wants_sign_in(reason):
            return self._on_needs_login(name)
        if reason.startswith("wants credentials "):
            said = self._fold(with_program(reason), name)
            return self._state(name, self._colour("needs credentials", _YELLOW) + f": {said}", ok=False)
        reason = reason.removeprefix("could not be connected: ").removeprefix("cannot be reached: ")
        return self._state(name, self._colour("unreachable", _RED) + f": {self._fold(reason, name)}", ok=False)

    def _on_needs_login(self, name: str) -> str | None:
        command = command_for("login", name)
        return self._state(name, self._colour("needs sign-in", _YELLOW) + f": {command}", ok=False)

    def _on_lost(self, event: Event) -> str | None:
        name = str(event["server"])
        return self._state(name, self._colour("lost", _RED) + f": {self._fold(str(event['reason']), name)}", ok=False)

    def _on_invalid(self, event: Event) -> str | None:
        if not self._is_ready:
            # The table of servers says it in a moment.
            return None
        return f"{event['server']}  {self._colour('invalid', _RED)}: {one_line(str(event['reason']))}"

    def _on_refused(self, event: Event) -> str:
        reason = one_line(str(event.get("reason") or event["error"]))
        return f"{self._colour('the config file cannot be used', _RED)}, so the gateway goes on as before: {reason}"

    def _on_remark(self, event: Event) -> str | None:
        """Each time the file is read its remarks are made again."""
        remark = one_line(str(event["remark"]))
        if remark in self._remarks:
            return None
        self._remarks.add(remark)
        return f"note: {remark}"

    def _on_left_out(self, event: Event) -> str:
        reason = one_line(str(event.get("reason", "the server has two tools of this name")))
        return f"{event['serverName']}  {one_line(str(event['tool']))} is left out: {reason}"

    def _on_connected(self, event: Event) -> str | None:
        """Only of a server that could not be reached: others are connected whenever somebody needs them, and one that
        was lost is asked for its tools next."""
        name = str(event["server"])
        if "unreachable" not in self._said.get(name, ""):
            return None
        return self._state(name, self._colour("ready", _GREEN) + " again", ok=True)

    def _state(self, name: str, text: str, *, ok: bool) -> str | None:
        if self._said.get(name) == text:
            return None
        self._said[name] = text
        return f"{name}  {text}{self._note_asked(name, ok=ok)}"

    def _note_asked(self, name: str, *, ok: bool) -> str:
        """The end of the line at which the last of the new servers has been asked."""
        if name not in self._unasked:
            return ""
        self._unasked.discard(name)
        self._asked[name] = ok
        if self._unasked or len(self._asked) == 1:
            return ""
        ready = sum(self._asked.values())
        away = len(self._asked) - ready
        return f"\n{_INDENT}All {len(self._asked)} new servers have been asked: {ready} ready" + (
            f", {away} not." if away else "."
        )

    def _fold(self, reason: str, name: str) -> str:
        """A reason on one line, and below it the last lines that the server wrote."""
        head, _, said = reason.partition(_SAID)
        written = [line for line in said.split(_BETWEEN) if line]
        lines = _most_telling(written)
        room = max(self._width() - len(_INDENT), _LEAST_WIDTH)
        head = self._wrap(_cut(one_line(head), max(2 * room - len(name), _LEAST_WIDTH)), room, len(name))
        more = [f"all of it: {command_for('logs', name)}"] if len(lines) < len(written) else []
        return "".join([head, *(f"\n{_INDENT}{_cut(one_line(line), room)}" for line in (*lines, *more))])

    def _wrap(self, text: str, room: int, taken: int) -> str:
        """Lines that end between words; of the first, the name and the state take some."""
        state = " " * (taken + len("  unreachable: "))
        return f"\n{_INDENT}".join(wrap_words(text, room, initial_indent=state)).removeprefix(state)

    def _colour(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._coloured else text


def _count_servers(count: int) -> str:
    return "1 server" if count == 1 else f"{count} servers"


def _generic(event: Event) -> str:
    """Any other event: its name, and what it says."""
    level = str(event.get("level", "info"))
    fields = [f"{key}={one_line(str(value))}" for key, value in event.items() if key not in _PLAIN_FIELDS]
    words = [*([] if level == "info" else [f"{level}:"]), str(event["event"]), *fields]
    return " ".join(words)


def _most_telling(lines: list[str]) -> list[str]:
    """The last lines; from the last error on, if that is further up."""
    error = next((at for at in range(len(lines) - 1, -1, -1) if _ERROR.search(lines[at])), len(lines))
    start = max(0, min(error, len(lines) - _MOST_SAID))
    return lines[start : start + _MOST_SAID]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _is_coloured() -> bool:
    # Older terminals of Windows show the codes.
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.platform != "win32"
