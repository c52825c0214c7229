"""What a server's 401 or 403 means: it wants credentials, or others, or forbids this one request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pegboard.result import ToolErrorCode, ToolFailure
from pegboard.servers.authorization import Challenge

REFUSALS = frozenset({401, 403})
# How messages begin, behind the server's name.
_REFUSED = ("wants a", "wants credentials", "wants more rights", "refused the request")
# Of those that a sign-in helps with.
SIGN_IN_WORDS = ("wants a sign-in: ", "wants more rights ")
_MOST_SCOPES = 20
_LONGEST_SCOPE = 200


class AccessRefused(ToolFailure):
    """The server did not act on a request because of who asks."""

    def __init__(
        self, message: str, challenge: Challenge, used: str | None = None, *, sign_in: str | None = None
    ) -> None:
        """`sign_in` is the server's name where a sign-in would help."""
        super().__init__(ToolErrorCode.UNAVAILABLE, message, retryable=False)
        self.error = replace(self.error, sign_in=sign_in)
        self.challenge = challenge
        # What was sent as `Authorization`.
        self.used = used
        # Whether there are other credentials by now: then the request is worth sending once more.
        self.is_renewed = False


class NeedsAuth(AccessRefused):
    """The server wants credentials that it was not given."""

    def __init__(
        self,
        label: str,
        challenge: Challenge,
        used: str | None = None,
        *,
        signs_in: bool = False,
        has_sign_in: bool = False,
    ) -> None:
        """`signs_in`: a sign-in would be used; `has_sign_in`: there is one, whatever the challenge says."""
        said = f'wants credentials (HTTP {challenge.status}): set "headers" with an Authorization in its config'
        if signs_in:
            # One of 2025-03-26 has a sign-in and does not say so; one that takes tokens alone says the same.
            said += f", or if it has a sign-in: pegboard login {label}"
        if challenge.resource_metadata is not None:
            said = f"wants a sign-in with OAuth (HTTP {challenge.status})"
        is_sure = has_sign_in or used is not None or challenge.resource_metadata is not None
        words = wants_sign_in(label) if signs_in and is_sure else f"{label} {said}"
        super().__init__(words, challenge, used, sign_in=label if signs_in else None)


class NeedsScope(AccessRefused):
    """The credentials are good, but not for this request; others of the server may go on."""

    def __init__(self, label: str, challenge: Challenge, used: str | None = None, *, signs_in: bool = False) -> None:
        named = ", ".join(scope[:_LONGEST_SCOPE] for scope in challenge.scopes[:_MOST_SCOPES])
        scopes = f" (scopes: {named})" if named else ""
        advice = f"pegboard login {label}" if signs_in else "the token in its config lacks them"
        self._wish = f"{label} wants more rights for this{scopes}"
        super().__init__(f"{self._wish}: {advice}", challenge, used, sign_in=label if signs_in else None)

    def withdraw_offer(self) -> None:
        """Another sign-in would bring no more than the last one did."""
        words = f"{self._wish}, which the sign-in was to give and did not"
        self.args = (words,)
        self.error = replace(self.error, message=words, sign_in=None)


class RequestForbidden(AccessRefused):
    """The server refuses this request, and says nothing of credentials that would help."""

    def __init__(self, label: str, challenge: Challenge, used: str | None = None, words: str = "") -> None:
        said = f"{label} refused the request (HTTP {challenge.status}){f': {words}' if words else ''}"
        super().__init__(said, challenge, used)


def wants_sign_in(label: str) -> str:
    """What is said of a server that nobody is signed in to."""
    return f"{label} wants a sign-in: pegboard login {label}"


def is_refusal(message: str, label: str) -> bool:
    """Whether a message is one of these, about this server: what earlier runs have kept is no more than words."""
    return message.startswith(tuple(f"{label} {words} " for words in _REFUSED))


def refusal_of(
    label: str,
    status: int,
    headers: Mapping[str, str] | None,
    used: str | None = None,
    *,
    signs_in: bool = False,
    has_sign_in: bool = False,
    words: str = "",
) -> AccessRefused:
    """A 401 or 403 as what it means; `words` are the server's own."""
    challenge = Challenge.of(status, headers or {})
    if status == 401:
        return NeedsAuth(label, challenge, used, signs_in=signs_in, has_sign_in=has_sign_in)
    if challenge.wants_scopes:
        return NeedsScope(label, challenge, used, signs_in=signs_in)
    return RequestForbidden(label, challenge, used, words)
