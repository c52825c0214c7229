"""The `auth` section of the config: who may come in, and by which rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pegboard.access.rule import Rule

Required = Literal["remote", True, False]
# What is safe to sign with: the key that verifies cannot sign.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerSettings:
    """An authorization server whose JWTs are taken."""

    issuer: str
    # Empty: the gateway's own resource identifiers.
    audience: tuple[str, ...] = ()
    # Empty: where the issuer's metadata says.
    jwks_url: str = ""
    algorithms: tuple[str, ...] = ALGORITHMS
    # The claims that name the subject and its groups.
    subject: str = "sub"
    groups: str = "groups"
    # The scopes that clients are told to ask for.
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSettings:
    """Who has to say who they are, and what whoever does may do."""

    # `remote`: everybody but the user that the gateway runs as, on this machine.
    required: Required = "remote"
    # What others call this gateway, scheme and host: behind a proxy only its owner knows.
    public_url: str = ""
    issuers: tuple[IssuerSettings, ...] = ()
    rules: tuple[Rule, ...] = ()
