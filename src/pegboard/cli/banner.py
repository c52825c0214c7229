"""What `serve` says when it is ready: its address, its servers, and what to do next."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pegboard.cli.common import short_place
from pegboard.cli.first_steps import example_server, has_client_files
from pegboard.cli.page_link import page_link
from pegboard.cli.program import command_for, find_program, install_advice, with_program
from pegboard.cli.show import TerminalTable, colour_state, cut_line, one_line, say, say_wrapped, state_word

if TYPE_CHECKING:
    from pegboard.config import Location

# Servers with a line of their own.
_MOST_SHOWN = 40
_LONGEST_NOTE = 300
_TROUBLE = frozenset({"invalid", "unreachable", "lost", "needs_auth"})


def show_banner(
    url: str,
    location: Location,
    servers: Sequence[Mapping[str, Any]],
    toolsets: Mapping[str, int],
    admission: str,
) -> None:
    """Print it."""
    count = len(servers)
    # Programs read the address from this line.
    say(f"Pegboard listens on {url}/mcp with {count} server{'' if count == 1 else 's'}.")
    say(f"Config: {location.path}")
    say("")
    if servers:
        _show_servers(servers, location)
    if toolsets:
        parts = ", ".join(f"{name} {number}" for name, number in toolsets.items())
        say(f"Pegboard's own tools: {sum(toolsets.values())} ({parts}).")
    say(f"Who may come in: {admission}.")
    say("")
    _show_steps(url, is_first=not servers)


def _show_servers(servers: Sequence[Mapping[str, Any]], location: Location) -> None:
    table = TerminalTable("server", "state", "tools")
    for row in servers[:_MOST_SHOWN]:
        table.add(str(row["name"]), colour_state(state_word(row)), str(row["tools"]) if row["seen"] else "?")
    table.show()
    if len(servers) > _MOST_SHOWN:
        say(f"… and {len(servers) - _MOST_SHOWN} more.")
    for row in servers:
        if row.get("needsLogin"):
            say(f"{row['name']}: sign in with: {command_for('login', str(row['name']))}")
        elif row["state"] in _TROUBLE and row["lastError"]:
            note = short_place(one_line(with_program(str(row["lastError"]))), location.path)
            say_wrapped(f"{row['name']}: {cut_line(note, _LONGEST_NOTE)}", indent="  ")
    for row in servers:
        if (changed := row.get("changed")) and (changed["policy"] != "tell" or changed["wantsLook"]):
            command = command_for("changes", "show", str(row["name"]))
            say(f"{row['name']}: {changed['waits']} of its definitions differ from what is approved: {command}")
    if any(not row["seen"] and row["enabled"] and row["state"] not in _TROUBLE for row in servers):
        say("? = not asked yet. A server is started when a client needs it.")
    say("")


def _show_steps(url: str, *, is_first: bool) -> None:
    steps = [("Take over the servers of your clients:", command_for("import"), "it shows them, and asks first")]
    steps = [
        *(steps if is_first and has_client_files() else ()),
        ("Connect a client:", command_for("install", "claude-code"), "another one: " + command_for("clients")),
        ("By its address:", f"{url}/mcp/NAME", "NAME is yours to choose, one for each client"),
        (
            "Add your first server:" if is_first else "Add a server:",
            command_for("add", *example_server()),
            "",
        ),
        ("Look around:", command_for("servers"), f"in a browser: {page_link(url)}"),
    ]
    for what, how, more in steps:
        say(what)
        say(f"  {how}")
        if more:
            say(f"  {more}")
    if not find_program().is_on_path:
        say("")
        say("`pegboard` is not on your PATH: call it as above. To have it on the PATH:")
        say(f"  {install_advice()}")
    if sys.stderr.isatty():
        say("")
        say("Ctrl-C stops the gateway. Calls are shown below.")
