"""The options of `add` that say how to sign in to the server."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from pegboard.cli.common import WRONG_CALL, stop

ClientIdOption = Annotated[
    str | None, typer.Option("--client-id", metavar="ID", help="The OAuth client that was registered for it.")
]
ClientSecretOption = Annotated[
    str | None,
    typer.Option(
        "--client-secret", metavar="VARIABLE", help="The environment variable that has the secret of --client-id."
    ),
]
CallbackPortOption = Annotated[
    int | None,
    typer.Option(
        "--callback-port",
        metavar="PORT",
        min=1,
        max=65535,
        help="Where the browser comes back to: http://localhost:PORT/callback.",
    ),
]
ScopeOption = Annotated[
    list[str] | None, typer.Option("--scope", metavar="SCOPE", help="Ask for this scope at the sign-in, and no other.")
]
# Those of the options that have a value.
SIGN_IN_OPTIONS = frozenset({"--client-id", "--client-secret", "--callback-port", "--scope"})
_VARIABLE = re.compile(r"(?:\$\{)?(?:env:)?([A-Za-z_]\w*)\}?")


def oauth_member(
    client_id: str | None, client_secret: str | None, callback_port: int | None, scopes: list[str] | None
) -> dict[str, Any]:
    """The `oauth` section that the options stand for; empty if none was given."""
    oauth: dict[str, Any] = {}
    if client_id:
        oauth["clientId"] = client_id
    if client_secret is not None:
        found = _VARIABLE.fullmatch(client_secret)
        if found is None or not client_id:
            # As it is, a secret would be in the history of the shell and in the list of processes.
            needs = "the name of an environment variable" if found is None else "--client-id"
            stop(f"--client-secret needs {needs}", WRONG_CALL)
        oauth["clientSecret"] = f"${{{found[1]}}}"
    if callback_port is not None:
        oauth["callbackPort"] = callback_port
    if scopes:
        oauth["scopes"] = [word for each in scopes for word in each.split()]
    return oauth
