"""An authorization server, as its metadata describes it (RFC 8414, OpenID Connect Discovery)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pegboard.exactjson import as_list

# More of a list is nothing that anybody would offer.
_MOST_WORDS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationServer:
    """Where its endpoints are, and what it offers; `None` for a list that its metadata leaves out."""

    issuer: str
    token_endpoint: str
    authorization_endpoint: str | None = None
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    device_authorization_endpoint: str | None = None
    scopes_supported: tuple[str, ...] | None = None
    code_challenge_methods: tuple[str, ...] | None = None
    token_endpoint_auth_methods: tuple[str, ...] | None = None
    token_endpoint_auth_algorithms: tuple[str, ...] | None = None
    grant_types: tuple[str, ...] | None = None
    iss_parameter_supported: bool = False
    client_id_metadata_document_supported: bool = False

    @classmethod
    def of(cls, issuer: str, metadata: Mapping[str, Any]) -> AuthorizationServer | None:
        """The server of this issuer by its metadata; `None` if these name no token endpoint."""
        token_endpoint = _text(metadata, "token_endpoint")
        if token_endpoint is None:
            return None
        return cls(
            issuer=issuer,
            token_endpoint=token_endpoint,
            authorization_endpoint=_text(metadata, "authorization_endpoint"),
            registration_endpoint=_text(metadata, "registration_endpoint"),
            revocation_endpoint=_text(metadata, "revocation_endpoint"),
            device_authorization_endpoint=_text(metadata, "device_authorization_endpoint"),
            scopes_supported=read_words(metadata.get("scopes_supported")),
            code_challenge_methods=read_words(metadata.get("code_challenge_methods_supported")),
            token_endpoint_auth_methods=read_words(metadata.get("token_endpoint_auth_methods_supported")),
            token_endpoint_auth_algorithms=read_words(metadata.get("token_endpoint_auth_signing_alg_values_supported")),
            grant_types=read_words(metadata.get("grant_types_supported")),
            iss_parameter_supported=metadata.get("authorization_response_iss_parameter_supported") is True,
            client_id_metadata_document_supported=metadata.get("client_id_metadata_document_supported") is True,
        )

    @classmethod
    def at_origin(cls, origin: str) -> AuthorizationServer:
        """The one of a server without any metadata, by the rules of 2025-03-26."""
        return cls(
            issuer=origin,
            authorization_endpoint=f"{origin}/authorize",
            token_endpoint=f"{origin}/token",
            registration_endpoint=f"{origin}/register",
            # PKCE was required of all servers, and there was no other way to say so.
            code_challenge_methods=("S256",),
        )

    def to_json(self) -> dict[str, Any]:
        """Its metadata, to be kept."""
        written = {
            "issuer": self.issuer,
            "authorization_endpoint": self.authorization_endpoint,
            "token_endpoint": self.token_endpoint,
            "registration_endpoint": self.registration_endpoint,
            "revocation_endpoint": self.revocation_endpoint,
            "device_authorization_endpoint": self.device_authorization_endpoint,
            "scopes_supported": _as_list(self.scopes_supported),
            "code_challenge_methods_supported": _as_list(self.code_challenge_methods),
            "token_endpoint_auth_methods_supported": _as_list(self.token_endpoint_auth_methods),
            "token_endpoint_auth_signing_alg_values_supported": _as_list(self.token_endpoint_auth_algorithms),
            "grant_types_supported": _as_list(self.grant_types),
            "authorization_response_iss_parameter_supported": self.iss_parameter_supported or None,
            "client_id_metadata_document_supported": self.client_id_metadata_document_supported or None,
        }
        return {key: value for key, value in written.items() if value is not None}

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> AuthorizationServer:
        """What `to_json` wrote; raises `ValueError` if it is something else."""
        issuer = written.get("issuer")
        server = cls.of(issuer, written) if isinstance(issuer, str) else None
        if server is None:
            raise ValueError("no authorization server")
        return server


def metadata_addresses(issuer: str) -> list[str]:
    """Where the metadata of an issuer may be, in the order in which they are asked for: RFC 8414, then OpenID Connect,
    which has two ways to write an issuer with a path."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    known = [
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}/.well-known/openid-configuration{path}",
        f"{origin}{path}/.well-known/openid-configuration",
    ]
    return list(dict.fromkeys(known))


def read_words(value: object) -> tuple[str, ...] | None:
    """A list of texts; `None` if it is none."""
    words = as_list(value)
    return None if words is None else tuple(word for word in words[:_MOST_WORDS] if isinstance(word, str))


def _text(members: Mapping[str, Any], key: str) -> str | None:
    value = members.get(key)
    return value if isinstance(value, str) and value else None


def _as_list(words: tuple[str, ...] | None) -> list[str] | None:
    return None if words is None else list(words)
