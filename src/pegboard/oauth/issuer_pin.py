"""The issuer pin: the authorization server that credentials of the config were given to first, for everybody.

A server says itself which authorization server it has. If it could name another one later, that one would be given the
client's secret by whoever signs in next, or by a machine flow.
"""

from __future__ import annotations

from pegboard.config import ServerSpec
from pegboard.oauth.discovery import is_same_issuer
from pegboard.result import invalid


def client_to_pin(spec: ServerSpec) -> str | None:
    """The client whose issuer is pinned; `None` if the config has no credentials for it, or says itself where they
    go."""
    settings = spec.sign_in
    if settings.issuer or settings.token_endpoint or settings.auth_server_metadata_url:
        return None
    has_credentials = settings.client_secret or settings.private_key or settings.assertion
    return settings.client_id if has_credentials else None


def pin_key(spec: ServerSpec, client_id: str) -> tuple[str, str]:
    """By what it is kept among the registrations, none of which has such a redirect."""
    return spec.url or "", f"issuer of {client_id}"


def require_issuer(spec: ServerSpec, pinned: str, issuer: str) -> None:
    """Raise `ToolFailure` if it is another issuer than the one that is pinned."""
    if not is_same_issuer(pinned, issuer):
        raise invalid(
            f"server {spec.name} names another authorization server now: {issuer} instead of {pinned}, which was given"
            " the credentials of the config before. They are not sent there. If that is right, set oauth.issuer in the"
            " config"
        )
