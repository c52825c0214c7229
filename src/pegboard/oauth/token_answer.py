"""The answer of a token endpoint: tokens, or one of three kinds of refusal (RFC 6749, section 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from pegboard.oauth.fetching import JsonAnswer
from pegboard.oauth.server_words import describe_error, error_of_answer
from pegboard.result import ToolErrorCode, ToolFailure
from pegboard.servers.http.client import WrongStatus

# `invalid_grant` and other servers' words for it, and those that want a person.
_ENDS = frozenset({"invalid_grant", "bad_refresh_token", "invalid_refresh_token", "bad_verification_code"}) | {
    *("expired_token", "access_denied", "interaction_required", "login_required", "consent_required"),
}
_CLIENT = frozenset({"invalid_client", "unauthorized_client", "incorrect_client_credentials", "invalid_client_id"})
_LATER = frozenset({"temporarily_unavailable", "server_error", "slow_down", "authorization_pending"})
_LONGEST_LIFE = 10 * 365 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAnswer:
    """What a token endpoint gives."""

    access_token: str = field(repr=False)
    # Seconds; `None`: it did not say.
    expires_in: float | None = None
    refresh_token: str | None = field(default=None, repr=False)
    # `None`: as it was asked for.
    scope: str | None = None
    token_type: str
    id_token: str | None = field(default=None, repr=False)
    issued_token_type: str | None = None


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
        return self.oauth_error in _ENDS


class ClientRefused(TokenRefused):
    """The client is not known, or not as it said who it is."""


class TokenEndpointAway(TokenRefused):
    """Nobody can say now: whatever was granted stays."""


def read_token_answer(answer: JsonAnswer, label: str) -> TokenAnswer:
    """The tokens of an answer. Raises `GrantRefused`, `ClientRefused` or `TokenEndpointAway`."""
    token, members = answer.members.get("access_token"), answer.members
    if answer.status not in {200, 201} or not isinstance(token, str) or not token:
        raise read_refusal(answer, label)
    if not token.isascii() or not token.isprintable() or " " in token:
        raise GrantRefused(f"{label} gave a token that cannot stand in a header", "invalid_token")

    def text(key: str) -> str | None:
        value = members.get(key)
        return value if isinstance(value, str) and value else None

    return TokenAnswer(
        access_token=token,
        expires_in=read_seconds(members.get("expires_in")),
        refresh_token=text("refresh_token"),
        scope=text("scope"),
        token_type=text("token_type") or "Bearer",
        id_token=text("id_token"),
        issued_token_type=text("issued_token_type"),
    )


def read_refusal(answer: JsonAnswer, label: str) -> TokenRefused:
    """What an answer without a token means."""
    error, said = error_of_answer(answer.members), describe_error(answer.members)
    if answer.status == 429 or answer.status >= 500 or not error or error in _LATER:
        pause = WrongStatus(label, answer.status, answer.headers).error.retry_after
        reason = said or answer.problem or "the answer has neither a token nor an error"
        message = f"{label} gives no token now (HTTP {answer.status}, {reason})"
        return TokenEndpointAway(message, error, retryable=True, retry_after=pause)
    if error in _CLIENT:
        return ClientRefused(f"{label} refused the client: {said}", error)
    return GrantRefused(f"{label} refused: {said}", error)


def read_seconds(said: object) -> float | None:
    """A length of time, as a number or, as some write it, a text; `None` if it is none."""
    if isinstance(said, bool):
        return None
    try:
        seconds = float(str(said))
    except ValueError:
        return None
    return min(seconds, _LONGEST_LIFE) if math.isfinite(seconds) and seconds > 0 else None
