"""The assertion with which a client proves by its key who it is: `private_key_jwt` (RFC 7523)."""

from __future__ import annotations

from pegboard.oauth.registration import OAuthClient

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


async def make_client_assertion(client: OAuthClient, audience: str) -> str:
    """A new assertion for one request."""
    raise NotImplementedError
