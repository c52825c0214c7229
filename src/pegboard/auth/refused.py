"""Why somebody is not let in, as HTTP and OAuth say it (RFC 6750)."""

from __future__ import annotations

from pegboard.access.principal import ANONYMOUS, Principal


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
        cause: str = "",
        principal: Principal = ANONYMOUS,
        claim: str = "",
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.error = error
        self.scopes = scopes
        self.retry_after = retry_after
        # For the audit, and nobody else: why, in a word; who it is, if they have proven that; who they claim to be.
        self.cause = cause
        self.principal = principal
        self.claim = claim

    @property
    def kind(self) -> str:
        """The reason in a word, for those who count."""
        return self.error or _KINDS.get(self.status, "other")

    def again(self) -> AuthRefused:
        """The same for another request: an exception keeps the trace of where it was raised."""
        return AuthRefused(
            self.status,
            self.reason,
            error=self.error,
            scopes=self.scopes,
            retry_after=self.retry_after,
            cause=self.cause,
            principal=self.principal,
            claim=self.claim,
        )

    @property
    def word(self) -> str:
        """Why, as records of the audit have it."""
        return self.cause or self.error or _WORDS.get(self.status, str(self.status))


_WORDS = {401: "no_credentials", 403: "forbidden", 429: "limit"}
_KINDS = {401: "no_credentials", 403: "no_rule", 429: "flood", 503: "keys_unavailable"}


def invalid_token(reason: str, *, cause: str = "", principal: Principal = ANONYMOUS, claim: str = "") -> AuthRefused:
    """A token that is none of ours, or not any more."""
    return AuthRefused(401, reason, error="invalid_token", cause=cause, principal=principal, claim=claim)
