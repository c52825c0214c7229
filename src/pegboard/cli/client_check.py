"""The check of a client's entry: whether the gateway wants a token there, and what to say of the outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pegboard.cli.program import with_program
from pegboard.cli.rest_client import RestClient
from pegboard.cli.show import count_tools, say, say_wrapped

if TYPE_CHECKING:
    from pegboard.cli.http_transport import GatewayTransport
    from pegboard.client_configs.check import CheckOutcome


def wants_token(running: GatewayTransport) -> bool:
    """Whether a gateway wants a token of everybody who comes over HTTP, the user of this machine included."""
    status: dict[str, Any] = RestClient(running).status().get("data") or {}
    access: dict[str, Any] = status.get("access") or {}
    return access.get("local") is False


def show_check(kind: str, check: CheckOutcome) -> None:
    """Say whether a client gets an answer at its entry, and what to do if not."""
    if check.problem is None:
        # Servers that were never asked are asked now: a first list may be empty.
        listed = f" It lists {count_tools(check.tools)}" if check.tools else ""
        more = f", and {check.more} more {'is' if check.more == 1 else 'are'} found when needed" if check.more else ""
        say_wrapped(f"Checked: Pegboard answers.{f'{listed}{more}.' if listed else ''}")
        return
    if check.needs_token:
        say(f"Pegboard does not let this client in: {check.problem}", error=True)
        advice = "make a token: pegboard token add NAME"
        say("  → add the header Authorization: Bearer TOKEN to the entry, or install with --stdio", error=True)
    else:
        say(f"Pegboard does not answer there yet: {check.problem}", error=True)
        advice = "start the gateway: pegboard serve" if kind == "http" else "see what is wrong: pegboard doctor"
    say(f"  → {with_program(advice)}", error=True)
