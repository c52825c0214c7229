"""Why somebody is not let in, as HTTP and OAuth say it (RFC 6750)."""

from __future__ import annotations


class AuthRefused(Exception):  # noqa: N818  it says what became of the request
    """A request whose sender is not known, or may not. Without an `error` it brought no credentials at all."""

    def __init__(
        self,
        status: int,
        reason: str,
        *,
        error: str = "",
        scopes: frozenset[str] = frozenset(),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.error = error
        self.scopes = scopes
        self.retry_after = retry_after


def invalid_token(reason: str) -> AuthRefused:
    """A token that is none of ours, or not any more."""
    return AuthRefused(401, reason, error="invalid_token")
