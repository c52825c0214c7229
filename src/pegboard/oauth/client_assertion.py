"""The assertion with which a client proves by its key who it is: `private_key_jwt` (RFC 7523)."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Collection
from typing import Any

from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.oauth_client import OAuthClient
from pegboard.result import invalid

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
# Seconds that an assertion is good for.
_LIFE = 120
_NO_KEY = "oauth.privateKey is no private key in PEM form, RSA, EC or Ed25519"
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_RSA = ("RS256", "PS256", "RS384", "PS384", "RS512", "PS512")


async def make_client_assertion(client: OAuthClient, server: AuthorizationServer) -> str:
    """A new assertion for one request to a server."""
    # Reading a key alone can take 50 ms.
    return await asyncio.to_thread(_sign, client, server)


def _sign(client: OAuthClient, server: AuthorizationServer) -> str:
    import jwt

    key = _load_key(client.private_key or "")
    algorithm = client.algorithm or _choose_algorithm(key, server.token_endpoint_auth_algorithms)
    now = int(time.time())
    claims = {"iss": client.client_id, "sub": client.client_id, "aud": server.issuer, "jti": str(uuid.uuid4())}
    claims |= {"iat": now, "exp": now + _LIFE}
    try:
        return jwt.encode(claims, key, algorithm, {"kid": client.key_id} if client.key_id else None)
    except (jwt.PyJWTError, NotImplementedError, ValueError, TypeError):
        raise invalid(f"oauth.privateKey cannot sign with {algorithm}") from None


def _load_key(pem: str) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    # A variable of the environment often has its lines so.
    text = pem.replace("\\n", "\n").strip()
    try:
        return load_pem_private_key(text.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise invalid(_NO_KEY) from None


def _choose_algorithm(key: Any, offered: Collection[str] | None) -> str:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    if isinstance(key, RSAPrivateKey):
        return next((each for each in _RSA if each in (offered or _RSA)), _RSA[0])
    if isinstance(key, EllipticCurvePrivateKey) and key.curve.name in _CURVES:
        return _CURVES[key.curve.name]
    if isinstance(key, Ed25519PrivateKey):
        return "EdDSA"
    raise invalid(_NO_KEY)
