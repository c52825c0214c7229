"""The answer of a token endpoint: tokens, or one of three kinds of refusal (RFC 6749, section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pegboard.oauth.fetching import JsonAnswer
from pegboard.result import ToolErrorCode, ToolFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAnswer:
    """What a token endpoint gives."""

    access_token: str = field(repr=False)
    # Seconds; `None`: it did not say.
    expires_in: float | None = None
    refresh_token: str | None = field(default=None, repr=False)
    # `None`: as it was asked for.
    scope: str | None = None
    token_type: str = "Bearer"
    id_token: str | None = field(default=None, repr=False)


class TokenRefused(ToolFailure):
    """A token endpoint gives no token; `oauth_error` is its word for why."""

    def __init__(
        self, message: str, oauth_error: str = "", *, retryable: bool = False, retry_after: float = 0.0
    ) -> None:
        super().__init__(ToolErrorCode.UNAVAILABLE, message, retryable=retryable, retry_after=retry_after)
        self.oauth_error = oauth_error


class GrantRefused(TokenRefused):
    """The grant itself is refused; one that is at its end (`ends_grant`) is of no more use."""

    @property
    def ends_grant(self) -> bool:
        """Whether a new sign-in is needed."""
        raise NotImplementedError


class ClientRefused(TokenRefused):
    """The client is not known, or not as it said who it is."""


class TokenEndpointAway(TokenRefused):
    """Nobody can say now: whatever was granted stays."""


def read_token_answer(answer: JsonAnswer, label: str) -> TokenAnswer:
    """The tokens of an answer. Raises `GrantRefused`, `ClientRefused` or `TokenEndpointAway`."""
    raise NotImplementedError
