"""What `doctor` says of the key that seals sign-ins, and of sign-ins that cannot be read for want of theirs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pegboard.cli.rest_client import connect

if TYPE_CHECKING:
    from pegboard.cli.rest_client import RestClient
    from pegboard.config import Location

# What it is about, how bad it is, what is so, and what to do.
SecretsFinding = tuple[str, str, str, str]


def look_at_secrets(location: Location) -> Iterator[SecretsFinding]:
    """Ask the gateway that runs, whose environment counts, or look at that of this process."""
    gateway = connect(location)
    if problem := _find_key_problem(gateway):
        said = f"nobody can sign in to a server, and sign-ins that are stored cannot be used: {problem}"
        where = "in the environment of the gateway, and restart it" if gateway.is_running else "in the environment"
        yield "secrets", "warning", said, f"set the right key {where}"
        return
    answer = gateway.logins()
    # The storage has a finding of its own.
    logins: list[dict[str, str]] = [] if "error" in answer else answer["data"]["logins"]
    reasons = {row["server"]: row["reason"] for row in logins if row["state"] == "unreadable"}
    for server, reason in reasons.items():
        advice = f"start the gateway with the key that it had before, or sign in again: pegboard login {server}"
        yield f"server {server}", "warning", f"its sign-in is there, but {reason}", advice


def _find_key_problem(gateway: RestClient) -> str | None:
    if gateway.is_running:
        answer = gateway.status()
        return None if "error" in answer else answer["data"].get("keyProblem")
    from pegboard.sealing.key_search import find_key_problem

    return find_key_problem(os.environ)
