"""Reach: whether other machines reach the gateway, and whether it can tell who comes."""

from __future__ import annotations

from dataclasses import dataclass

from pegboard.access.settings import AuthSettings, Required

_WHAT_TO_DO = "Make a token first: pegboard token add NAME. Or let in whoever comes: --insecure"
_NOBODY_KNOWN = (
    "other machines can reach this address, and there is no way to tell who comes: there are no tokens, and "
    f"auth.issuers names nobody. {_WHAT_TO_DO}"
)
_EVERYBODY = (
    "other machines can reach this address, and auth.required is false: whoever comes could call every tool. Take "
    "auth.required out of the config and make a token: pegboard token add NAME. Or let in whoever comes: --insecure"
)


class UnprotectedError(RuntimeError):
    """A gateway does not start, since it could not tell who comes."""

    def __init__(self, reason: str, *, is_config: bool) -> None:
        super().__init__(reason)
        # Whether it is the config that has to change.
        self.is_config = is_config


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a gateway can be reached from, and what whoever started it said about that."""

    # Whether other machines reach it.
    beyond_loopback: bool = False
    # Whether everybody may come in, for this run.
    insecure: bool = False

    def requirement(self, auth: AuthSettings) -> Required:
        """Who has to say who they are. A config that changes while the gateway runs does not open it to others."""
        if self.insecure and auth.required is not True:
            return False
        return "remote" if auth.required is False and self.beyond_loopback else auth.required

    def check(self, auth: AuthSettings, live_tokens: int) -> None:
        """Refuse to start where nobody could tell who comes."""
        if self.insecure or not self.beyond_loopback:
            return
        if auth.required is False:
            raise UnprotectedError(_EVERYBODY, is_config=True)
        if not auth.issuers and not live_tokens:
            raise UnprotectedError(_NOBODY_KNOWN, is_config=False)
