"""The credentials that were sent to a server lately, so that nothing repeats them: an error of the server may."""

from __future__ import annotations

from pegboard.log import Redactor
from pegboard.lru_dict import LruDict

# Tokens live for minutes, and each of many users has one.
_MOST = 128


class SentCredentials:
    """The newest of them, for whoever cleans texts about the server."""

    def __init__(self) -> None:
        self._tokens: LruDict[str, None] = LruDict(_MOST)
        self._made: tuple[Redactor, Redactor] | None = None

    def note(self, header: str) -> None:
        """This is sent as `Authorization`."""
        token = header.partition(" ")[2].strip() or header
        if token not in self._tokens:
            self._tokens[token] = None
            self._made = None

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._tokens)

    def added_to(self, redactor: Redactor) -> Redactor:
        """A redactor that removes them, too."""
        if not self._tokens:
            return redactor
        if self._made is None or self._made[0] is not redactor:
            self._made = redactor, Redactor(redactor.secrets | Redactor.of(self._tokens).secrets)
        return self._made[1]
