"""Sign-in advice: what somebody is told of a server that waits for a sign-in, as words that they can act on.

The servers say `pegboard login NAME`, which is for whoever has the machine. Others cannot run that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pegboard.clients.client import Client
from pegboard.config import ServerSpec
from pegboard.result import ToolFailure
from pegboard.servers.availability import Availability
from pegboard.servers.server import Server

_TOKENS_OR_SIGN_IN = ": set "


class SignInAdvice:
    """Puts the words of servers into those for one client."""

    def __init__(self, servers: Callable[[], Mapping[str, Server]]) -> None:
        self._servers = servers
        # What the user of this machine types; a process that they did not start by hand knows it better.
        self.login_command: Callable[[str], str] = lambda server: f"pegboard login {server}"
        # Where the user of a client signs in to a server, for themselves or as an admin for all; a gateway that has
        # such a page sets it.
        self.connect_address: Callable[[str, Client], str | None] = lambda _server, _client: None

    def reword(self, failure: ToolFailure, client: Client) -> ToolFailure:
        """The failure of a request of this client; the same one where its words will do."""
        wanted = failure.error.sign_in
        words = failure.error.message if wanted is None else self.words(wanted, failure.error.message, client)
        if words == failure.error.message:
            return failure
        # Another one: several that wait for one connection are given the same failure.
        other = ToolFailure(failure.error.code, words)
        other.error = replace(failure.error, message=words)
        return other

    def availability(self, found: Availability, server: str | None, client: Client) -> Availability:
        """The same for what is said of a server's tools."""
        if found.status != "needs_auth" or server is None or found.reason is None:
            return found
        return replace(found, reason=self.words(server, found.reason, client))

    def words(self, server: str, said: str, client: Client) -> str:
        """What a server says, for this client."""
        known = self._servers().get(server)
        command = f": pegboard login {server}"
        if known is None or not known.spec.signs_in or not said.endswith(command):
            return said
        wish = said.removesuffix(command)
        if client.principal.is_local:
            return f"{wish}: {self.login_command(server)}"
        is_clear = _TOKENS_OR_SIGN_IN not in wish
        wish = wish.partition(_TOKENS_OR_SIGN_IN)[0]
        if known.spec.sign_in.per == "user":
            return self._own_sign_in(known.spec, wish, client) or said
        if client.principal.admin:
            return self._sign_in_for_all(known.spec, said.removesuffix(command), client)
        if not is_clear:
            return f"{wish}: whoever runs this gateway has to give it some (pegboard doctor says how)"
        return f"{wish}: whoever runs this gateway has to sign in there (pegboard login {server})"

    def _sign_in_for_all(self, spec: ServerSpec, wish: str, client: Client) -> str:
        """An admin who comes with a token may be at another machine than the gateway's."""
        named = client.principal.kind != "anonymous"
        address = self.connect_address(spec.name, client) if named else None
        if address is None:
            return f"{wish}: on the gateway's machine, pegboard login {spec.name}"
        return f"{wish}: sign in at {address}"

    def _own_sign_in(self, spec: ServerSpec, wish: str, client: Client) -> str | None:
        if client.principal.kind == "anonymous":
            return f"{wish}: everybody signs in for themselves, and this gateway does not know who you are"
        address = self.connect_address(spec.name, client)
        return None if address is None else f"{wish}: sign in at {address}"
