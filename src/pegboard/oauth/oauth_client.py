"""The client that the gateway is at an authorization server: configured, a metadata document, or registered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from pegboard.config.oauth import client_id_problem
from pegboard.config.oauth_settings import OAuthSettings
from pegboard.oauth.authorization_server import AuthorizationServer

AuthMethod = Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]
ClientSource = Literal["configured", "document", "registered"]
AUTH_METHODS: tuple[str, ...] = get_args(AuthMethod)


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthClient:
    """Who the gateway is at one authorization server."""

    client_id: str
    issuer: str
    source: ClientSource
    auth_method: AuthMethod = "none"
    client_secret: str | None = field(default=None, repr=False)
    redirect_uri: str | None = None
    # A time as `time.time()` counts; `None`: never.
    secret_expires_at: float | None = None
    private_key: str | None = field(default=None, repr=False)
    algorithm: str | None = None
    key_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The client, to be kept under a seal."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> OAuthClient:
        """What `to_json` wrote; raises `ValueError` if it is something else."""
        known = {each.name for each in fields(cls)}
        try:
            return cls(**{key: value for key, value in written.items() if key in known})
        except TypeError:
            raise ValueError("no client of an authorization server") from None

    def is_expired(self, now: float) -> bool:
        """Whether its secret is of no more use."""
        return self.secret_expires_at is not None and self.secret_expires_at <= now


def client_of_config(
    settings: OAuthSettings, server: AuthorizationServer, redirect_uri: str | None = None
) -> OAuthClient | None:
    """The client that the config names, if it does."""
    if settings.client_id is None:
        return None
    return OAuthClient(
        client_id=settings.client_id,
        issuer=server.issuer,
        source="configured",
        auth_method=_auth_method(settings.client_secret, settings.private_key, server),
        client_secret=settings.client_secret,
        redirect_uri=redirect_uri,
        private_key=settings.private_key,
        algorithm=settings.algorithm,
        key_id=settings.key_id,
    )


def idp_client(settings: OAuthSettings, idp: AuthorizationServer) -> OAuthClient | None:
    """The client at the identity provider that the config names, if it does."""
    client_id = settings.idp_client_id or settings.client_id
    if client_id is None:
        return None
    secret = settings.idp_client_secret if settings.idp_client_id else settings.client_secret
    method = _auth_method(secret, None, idp)
    return OAuthClient(
        client_id=client_id, issuer=idp.issuer, source="configured", auth_method=method, client_secret=secret
    )


def document_client(document_url: str | None, server: AuthorizationServer, redirect_uri: str) -> OAuthClient | None:
    """The client whose id is the address of its metadata document, where the server takes such (CIMD)."""
    if not document_url or not server.client_id_metadata_document_supported or client_id_problem(document_url):
        return None
    return OAuthClient(client_id=document_url, issuer=server.issuer, source="document", redirect_uri=redirect_uri)


def _auth_method(secret: str | None, private_key: str | None, server: AuthorizationServer) -> AuthMethod:
    if private_key is not None:
        return "private_key_jwt"
    return "none" if secret is None else secret_method(server)


def secret_method(server: AuthorizationServer) -> AuthMethod:
    """How a secret is sent: as the server lists first, else in the header, which every server has to take (RFC 6749,
    section 2.3.1)."""
    methods = server.token_endpoint_auth_methods or ()
    found = next((each for each in methods if each in {"client_secret_basic", "client_secret_post"}), None)
    return "client_secret_post" if found == "client_secret_post" else "client_secret_basic"
