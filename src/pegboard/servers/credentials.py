"""The credentials that a sign-in gives for a server: who has them, and which were sent, so that none is repeated."""

from __future__ import annotations

from collections.abc import Callable

from pegboard.config import ServerSpec
from pegboard.log import Redactor
from pegboard.lru_dict import LruDict
from pegboard.servers.authorization import Authorize
from pegboard.servers.connection_key import principal_in
from pegboard.servers.errors import RpcError, redact_error
from pegboard.servers.transports.transport import Transport

# Tokens live for minutes, and each of many users has one.
_MOST_SENT = 128


def _sign_nothing(transport: Transport) -> None:
    """Its requests go as they are."""


class ServerCredentials:
    """Those of one server, for all of its connections."""

    def __init__(self, authorize: Authorize | None) -> None:
        self._authorize = authorize
        # The tokens that were sent lately: an error of the server may repeat one.
        self._sent: LruDict[str, None] = LruDict(_MOST_SENT)
        self._made: tuple[Redactor, Redactor] | None = None

    async def signer(self, spec: ServerSpec, key: str | None) -> Callable[[Transport], None]:
        """What has the requests of a new connection carry the credentials of whoever it belongs to."""
        authorization = None
        if self._authorize is not None and spec.signs_in:
            authorization = self._authorize(spec, principal_in(key))
        if authorization is None:
            return _sign_nothing
        if not authorization.is_fresh:
            await authorization.prepare()
        return lambda transport: transport.sign_by(authorization, self._note)

    def add_to(self, redactor: Redactor) -> Redactor:
        """A redactor that removes what was sent, too."""
        if not self._sent:
            return redactor
        if self._made is None or self._made[0] is not redactor:
            self._made = redactor, Redactor(redactor.secrets | Redactor.of(self._sent).secrets)
        return self._made[1]

    def clean_error(self, error: RpcError) -> None:
        """A server may repeat in its own error what it was sent."""
        if self._sent:
            redact_error(error, self.add_to(Redactor()))

    def _note(self, header: str) -> None:
        """This is sent as `Authorization`."""
        token = header.partition(" ")[2].strip() or header
        if token not in self._sent:
            self._sent[token] = None
            self._made = None
