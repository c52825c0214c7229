"""A sign-in as a person at a terminal goes through it: the address first, a browser where there is one, and then
whichever comes first: the answer that the browser brings, or the address that is pasted here."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pegboard.cli.program import command_for
from pegboard.cli.rest_client import Answer, RestClient
from pegboard.cli.show import day_and_time, say, say_wrapped
from pegboard.cli.typed_lines import hear_lines
from pegboard.cli.web_browser import browser_command, forward_command, is_remote_shell, open_address
from pegboard.cli.wording import for_people
from pegboard.host_names import is_loopback_name

# Seconds of one look at the gateway; whoever waits looks again.
_LOOK = 10
# What programs are told of the field, and what is no advice while the command still waits.
_FIELD, _ANEW = "callback: ", ": begin anew"
# After so many looks in a row that found no gateway, there is none.
_MOST_FAILURES = 3

Row = Mapping[str, Any]


def is_at_terminal() -> bool:
    """Whether somebody can be asked to paste something."""
    return sys.stdin.isatty() and sys.stderr.isatty()


class SignInDialog:
    """One sign-in that was begun, on a terminal."""

    def __init__(self, gateway: RestClient, row: Row) -> None:
        self._gateway = gateway
        self._row = row
        self._server, self._flow = str(row["server"]), str(row["flow"])
        # Lines that were pasted (texts), and what the gateway says of the end.
        self._events: queue.Queue[str | Answer] = queue.Queue()

    def show(self) -> None:
        """Say where to sign in, before anything else can go wrong."""
        if note := str(self._row.get("note", "")):
            say_wrapped(f"{note[0].upper()}{note[1:]}.", error=True)
        if "userCode" in self._row:
            say(f"To sign in to {self._server}, open this address on any machine, and type in the code:", error=True)
            self._show_address(self._row["verificationUri"])
            say(f"  code: {self._row['userCode']}", error=True)
        else:
            say(f"Sign in to {self._server} at this address:", error=True)
            self._show_address(self._row["url"])

    def open_browser(self, *, wanted: bool) -> None:
        """Open it in a browser, where there is one, and say what else can be done."""
        is_device = "userCode" in self._row
        address = self._row["verificationUri"] if is_device else self._row["url"]
        is_open = wanted and open_address(address)
        if is_open:
            say("It was opened in your browser.", error=True)
        elif wanted and browser_command() is not None:
            say("The browser could not be opened: open the address by hand.", error=True)
        if not is_device:
            self._show_ways(is_open=is_open)
        say(f"Waiting until {day_and_time(self._row['expiresAt'])}. Ctrl-C cancels.", error=True, flush=True)

    def wait(self) -> Answer:
        """The answer that ends it."""
        threading.Thread(target=self._watch, name="sign-in", daemon=True).start()
        if "userCode" in self._row or not is_at_terminal():
            return self._wait_for_end()
        with hear_lines(self._events.put):
            return self._wait_for_end()

    def cancel(self) -> bool:
        """Nobody waits here any more; whether that ends it: somebody else may wait for the same one."""
        answer = self._gateway.cancel_login(self._server, self._flow)
        # Whoever cannot be asked has ended, and this with it.
        return "error" in answer or bool(answer["data"]["cancelled"])

    def _show_address(self, address: str) -> None:
        say("", error=True)
        say(f"  {address}", error=True, flush=True)
        say("", error=True)

    def _show_ways(self, *, is_open: bool) -> None:
        redirect = urlsplit(str(self._row.get("redirect", "")))
        if is_remote_shell() and not is_open and is_loopback_name(redirect.hostname or ""):
            say("Your browser is on another machine? Then type this there first:", error=True)
            say(f"  {forward_command(redirect.port or 80)}", error=True)
            say_wrapped(
                "Or paste here what the browser's address is in the end, though its page cannot be shown.", error=True
            )
        else:
            say_wrapped(
                "If the browser ends at a page that cannot be shown, paste that page's address here.", error=True
            )

    def _watch(self) -> None:
        failures = 0
        while True:
            answer = self._gateway.look_at_login(self._server, self._flow, _LOOK)
            if "error" in answer:
                failures += 1
                if answer["error"]["code"] != "TOOL_UNAVAILABLE" or failures >= _MOST_FAILURES:
                    self._events.put(answer)
                    return
            elif answer["data"]["state"] == "waiting":
                failures = 0
            else:
                self._events.put(answer)
                return

    def _wait_for_end(self) -> Answer:
        while True:
            try:
                # With a limit, so that Ctrl-C is heard on every system.
                event = self._events.get(timeout=1.0)
            except queue.Empty:
                continue
            if not isinstance(event, str):
                return event
            if event.strip() and (answer := self._finish(event.strip())) is not None:
                return answer

    def _finish(self, pasted: str) -> Answer | None:
        """Finish with what was pasted; `None` if that is no answer to this sign-in, and another may be pasted."""
        answer = self._gateway.finish_login(self._server, self._flow, pasted)
        if "error" not in answer:
            return answer
        said = for_people(answer["error"]["message"]).removeprefix(_FIELD).removesuffix(_ANEW)
        say_wrapped(f"That is not it: {said}.", error=True)
        if self._is_waiting():
            say_wrapped(f"The sign-in to {self._server} still waits for its own answer.", error=True)
        return None

    def _is_waiting(self) -> bool:
        answer = self._gateway.look_at_login(self._server, self._flow, 0)
        return "error" not in answer and answer["data"]["state"] == "waiting"


def finish_command(server: str) -> str:
    """What finishes a sign-in with an address that was copied from a browser."""
    # It has letters that mean something to a shell.
    return command_for("login", server, "--callback", "ADDRESS").replace("ADDRESS", "'ADDRESS'")
