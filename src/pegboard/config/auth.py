"""Reads the `auth` section: who may come in. What is not understood there is an error, since a misspelt rule would let
in whom it should not."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

from pegboard.access.rule import Rule
from pegboard.access.rule_json import RuleError, read_rule
from pegboard.access.settings import ALGORITHMS, AuthSettings, IssuerSettings
from pegboard.config.address import url_problem
from pegboard.config.section import SectionContext
from pegboard.config.shape import ConfigNode
from pegboard.exactjson import as_object
from pegboard.host_names import is_loopback_name
from pegboard.names import nearest
from pegboard.toolsets.installed import TOOLSETS

_KEYS = ("required", "publicUrl", "issuers", "rules")
_ISSUER_KEYS = ("issuer", "audience", "jwksUrl", "algorithms", "subject", "groups", "scopes")


def refuse_misplaced(node: ConfigNode) -> None:
    """A section that stands where nobody reads it is an error if it asks for anything: the gateway would be open."""
    asked = as_object(node.value) or {}
    if any(value is not None and (key, value) != ("required", False) for key, value in asked.items() if key in _KEYS):
        raise node.wrong('stands outside of "pegboard", where nothing reads it: move it there')


def read_auth(node: ConfigNode, context: SectionContext) -> Mapping[str, Any]:
    """The section as settings."""
    _refuse_unknown(node, _KEYS)
    fields: dict[str, Any] = {}
    if required := node.get("required"):
        if required.value is not True and required.value is not False and required.value != "remote":
            raise required.mismatch('"remote", true or false')
        fields["required"] = required.value
    if public := node.get("publicUrl"):
        fields["public_url"] = _url(public, context).rstrip("/")
    if issuers := node.get("issuers"):
        fields["issuers"] = tuple(_issuer(each, context) for each in issuers.items())
    if rules := node.get("rules"):
        fields["rules"] = tuple(map(_rule, rules.items()))
    return {"auth": AuthSettings(**fields)}


def _issuer(node: ConfigNode, context: SectionContext) -> IssuerSettings:
    _refuse_unknown(node, _ISSUER_KEYS)
    address = node.get("issuer")
    if address is None:
        raise node.wrong("needs issuer: the address that stands as iss in its tokens")
    fields: dict[str, Any] = {"issuer": _url(address, context)}
    if audience := node.get("audience"):
        one = isinstance(audience.value, str)
        fields["audience"] = (audience.text(),) if one else audience.texts()
    if jwks := node.get("jwksUrl"):
        fields["jwks_url"] = _url(jwks, context)
    if algorithms := node.get("algorithms"):
        fields["algorithms"] = _algorithms(algorithms)
    if scopes := node.get("scopes"):
        fields["scopes"] = scopes.texts()
    fields |= {key: child.text() for key in ("subject", "groups") if (child := node.get(key))}
    return IssuerSettings(**fields)


def _algorithms(node: ConfigNode) -> tuple[str, ...]:
    names = node.texts()
    for name in names:
        if name not in ALGORITHMS:
            raise node.wrong(f'names "{name[:40]}", which is not taken: use {", ".join(ALGORITHMS)}')
    if not names:
        raise node.wrong("must name at least one algorithm")
    return names


def _rule(node: ConfigNode) -> Rule:
    try:
        return read_rule(node.value, toolsets=TOOLSETS, needs_who=True)
    except RuleError as exc:
        place = node
        for step in exc.path:
            # What is not there has no place of its own.
            inner = place.child(step)
            if inner is None:
                break
            place = inner
        raise place.wrong(exc.reason) from None


def _url(node: ConfigNode, context: SectionContext) -> str:
    address = context.fill_variables(node, node.text())
    if problem := url_problem(address):
        raise node.wrong(problem)
    parts = urlsplit(address)
    if parts.scheme != "https" and not is_loopback_name(parts.hostname or ""):
        raise node.wrong("must begin with https://, unless it is on this machine")
    return address


def _refuse_unknown(node: ConfigNode, known: Collection[str]) -> None:
    for key in node.members():
        if key not in known:
            close = nearest(key, known, 1)
            hint = f"; did you mean {close[0]}?" if close else f": there are {', '.join(known)}"
            raise node.wrong(f"has {key[:80]!r}, which is not a setting{hint}")
