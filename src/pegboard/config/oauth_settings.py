"""The `oauth` section of a server's entry: how the gateway signs in to that server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

OAuthFlow = Literal["browser", "device", "client_credentials", "id_jag", "jwt_bearer"]
OAuthPer = Literal["gateway", "user"]
FLOWS: tuple[str, ...] = get_args(OAuthFlow)
PER: tuple[str, ...] = get_args(OAuthPer)
# Flows that need no person.
MACHINE_FLOWS = frozenset({"client_credentials", "id_jag", "jwt_bearer"})


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthSettings:
    """What a server's entry says of its sign-in; whatever it leaves out is found out."""

    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    # `None`: what the server asks for.
    scopes: tuple[str, ...] | None = None
    # The redirect is http://localhost:PORT/callback, as Claude Code has it.
    callback_port: int | None = None
    # The whole redirect address, for a client that was registered with one of its own.
    redirect_uri: str | None = None
    auth_server_metadata_url: str | None = None
    # A client ID metadata document of one's own.
    client_metadata_url: str | None = None
    issuer: str | None = None
    # Endpoints, where there is no metadata to find them in.
    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    # `False`: the parameter is left out.
    resource: str | Literal[False] | None = None
    flow: OAuthFlow = "browser"
    # For `private_key_jwt`: a PEM, and what it signs with.
    private_key: str | None = field(default=None, repr=False)
    algorithm: str | None = None
    key_id: str | None = None
    # `id_jag`: the ID token. `jwt_bearer`: the JWT of the workload.
    assertion: str | None = field(default=None, repr=False)
    # Where an ID token is exchanged for an ID-JAG.
    idp_issuer: str | None = None
    idp_client_id: str | None = None
    idp_client_secret: str | None = field(default=None, repr=False)
    idp_token_endpoint: str | None = None
    per: OAuthPer = "gateway"
    # Further parameters of the authorization request.
    params: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    allow_http: bool = False

    @property
    def secrets(self) -> Iterator[str]:
        """What no log, error or reply may show."""
        yield from filter(None, (self.client_secret, self.private_key, self.assertion, self.idp_client_secret))

    @property
    def addresses(self) -> Iterator[str]:
        """The addresses that the config names itself, where nobody else led to."""
        named = (self.auth_server_metadata_url, self.issuer, self.authorization_endpoint, self.token_endpoint)
        yield from filter(None, (*named, self.idp_issuer, self.idp_token_endpoint))
