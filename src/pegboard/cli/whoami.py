"""`whoami`: as whom a command, or a token, comes in, and what it may do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from pegboard.cli.common import (
    WRONG_CALL,
    ConfigOption,
    JsonOption,
    exit_code_of_refusal,
    find_config,
    finish,
    stop,
    text_of_input,
)
from pegboard.cli.gateway_control import require_gateway
from pegboard.cli.grant_words import count_grant, name_servers
from pegboard.cli.rest_client import connect
from pegboard.cli.show import day_and_time, say, show_lines

_KINDS = {
    "local": "this machine's own user",
    "token": "the token {name}",
    "jwt": "{name}, by a JWT",
    "anonymous": "anonymous: no credential is needed here",
}


def add_to(app: typer.Typer) -> None:
    """Add this group's command."""
    app.command(short_help="Show as whom you come in, and what you may use.")(whoami)


def whoami(
    token_stdin: Annotated[bool, typer.Option("--token-stdin", help="Ask for the token on stdin instead.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show as whom you come in at the gateway, what you may use, and what is left of your limits.

    With --token-stdin a running gateway is asked about the token that is on stdin.

    \b
    Example: pegboard whoami
    Example: echo "$TOKEN" | pegboard whoami --token-stdin
    """
    location = find_config(config)
    if not token_stdin:
        gateway = connect(location)
    else:
        token = text_of_input().strip()
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            stop("there is no token on stdin", WRONG_CALL)
        gateway = require_gateway(location, "only a running gateway knows who comes with a token", bearer=token)
    answer = gateway.get("/api/whoami")
    finish(answer, as_json=as_json, show=_show, failed=exit_code_of_refusal(answer))


def _show(data: Mapping[str, Any]) -> None:
    who = _KINDS[data["kind"]].format(name=data["name"])
    say(f"You are {who}{' (admin)' if data['admin'] else ''}.")
    limits = [f"{each.get('server', '')} {each['limit']} ({each['left']} left)".lstrip() for each in data["limits"]]
    lines = {
        "until": day_and_time(data["expiresAt"]) if "expiresAt" in data else "",
        "may use": data["mayUse"],
        "limits": ", ".join(limits),
        "gives now": f"{count_grant(data['gives'])}{name_servers(data['gives'])}",
    }
    show_lines({what: text for what, text in lines.items() if text})
