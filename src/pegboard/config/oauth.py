"""Reads the `oauth` section of a server's entry: how the gateway signs in there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from pegboard.access.settings import ALGORITHMS
from pegboard.config.address import url_problem
from pegboard.config.oauth_settings import FLOWS, MACHINE_FLOWS, PER, OAuthFlow, OAuthPer, OAuthSettings
from pegboard.config.oauth_spellings import OAUTH_KEYS, oauth_places
from pegboard.config.shape import ConfigNode
from pegboard.host_names import host_name, is_loopback_name
from pegboard.names import correct_spelling, nearest

_TEXTS = ("clientId", "clientSecret", "privateKey", "keyId", "assertion", "idpClientId", "idpClientSecret")
_ADDRESSES = (
    *("authServerMetadataUrl", "issuer", "authorizationEndpoint", "tokenEndpoint", "idpIssuer"),
    *("idpTokenEndpoint", "clientMetadataUrl", "redirectUri"),
)
# The names that grants have in OAuth, for those who know a flow by them.
_GRANTS = {
    "authorization_code": "browser",
    "device_code": "device",
    "urn:ietf:params:oauth:grant-type:device_code": "device",
    "urn:ietf:params:oauth:grant-type:jwt-bearer": "jwt_bearer",
}
# Parameters of the authorization request that are not the config's to set.
_OWN_PARAMS = frozenset({"response_type", "client_id", "redirect_uri", "state", "code_challenge"}) | {
    *("code_challenge_method", "scope", "resource"),
}


def read_oauth(entry: ConfigNode) -> OAuthSettings | Literal[False] | None:
    """The section of an entry, its variables not yet filled in."""
    if (node := entry.get("oauth")) is not None and not isinstance(node.value, (bool, dict)):
        raise node.mismatch("an object or false")
    places = oauth_places(entry.members())
    if places is None or places is False:
        return places
    nodes = {key: _node(entry, path) for key, path in places.items()}
    for key, node in nodes.items():
        meant = None if key in OAUTH_KEYS else correct_spelling(key, OAUTH_KEYS)
        if meant is not None and meant not in nodes:
            raise node.wrong(f'is not a key: use "{meant}"')
    settings = OAuthSettings(**_members(nodes))
    if problem := _problem(settings):
        raise entry.wrong(f"oauth {problem}")
    return settings


def list_oauth_remarks(entry: ConfigNode) -> list[str]:
    """Keys of the section that mean nothing here and may be a slip; other clients have some of their own."""
    places = oauth_places(entry.members()) or {}
    unknown = [(path[-1], nearest(key, OAUTH_KEYS, 1)) for key, path in places.items() if key not in OAUTH_KEYS]
    return [
        f'server "{entry.key}": oauth.{key} is not a key: did you mean "{near[0]}"?' for key, near in unknown if near
    ]


def fill_oauth(
    settings: OAuthSettings, fill: Callable[[str], str], fill_target: Callable[[str], str]
) -> tuple[OAuthSettings, str | None]:
    """The settings with their variables filled in, and what is wrong with them then."""
    changes: dict[str, Any] = {}
    targets = set(map(_snake, _ADDRESSES))
    for each in fields(settings):
        value = getattr(settings, each.name)
        if isinstance(value, str):
            changes[each.name] = (fill_target if each.name in targets else fill)(value)
        elif isinstance(value, tuple):
            changes[each.name] = tuple(map(fill, cast("tuple[str, ...]", value)))
    params = {name: fill(value) for name, value in settings.params.items()}
    filled = replace(settings, **changes, params=params)
    for key in _ADDRESSES:
        address = getattr(filled, _snake(key))
        if address is not None and (problem := _address_problem(key, address)):
            return filled, f"oauth.{key} {problem}"
    return filled, None


def client_id_problem(url: str) -> str | None:
    """Why an address cannot be a client's id (a client ID metadata document), or `None`."""
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        return "must begin with https://"
    if not parts.path.strip("/") or any(segment in {".", ".."} for segment in parts.path.split("/")):
        return "must have a path"
    return "must have no fragment, name or password" if parts.fragment or parts.username is not None else None


def _members(nodes: Mapping[str, ConfigNode]) -> dict[str, Any]:
    found: dict[str, Any] = {_snake(key): nodes[key].text() for key in _TEXTS if key in nodes}
    found |= {_snake(key): _address(nodes[key], key) for key in _ADDRESSES if key in nodes}
    if node := nodes.get("scopes"):
        found["scopes"] = _words(node)
    if node := nodes.get("callbackPort"):
        found["callback_port"] = node.whole_number(1, 65535)
    if node := nodes.get("resource"):
        if node.value is True:
            raise node.mismatch("a text or false")
        found["resource"] = False if node.value is False else node.text()
    if node := nodes.get("flow"):
        found["flow"] = _flow(node)
    if node := nodes.get("algorithm"):
        found["algorithm"] = node.one_of(*ALGORITHMS)
    if node := nodes.get("per"):
        found["per"] = cast("OAuthPer", node.one_of(*PER))
    if node := nodes.get("allowHttp"):
        found["allow_http"] = node.flag()
    if params := _params(nodes.get("params"), nodes.get("audience")):
        found["params"] = params
    return found


def _node(entry: ConfigNode, path: tuple[str, ...]) -> ConfigNode:
    node = entry
    for step in path:
        inner = node.get(step)
        assert inner is not None
        node = inner
    return node


def _words(node: ConfigNode) -> tuple[str, ...]:
    words = node.value.split() if isinstance(node.value, str) else [*node.texts()]
    return tuple(dict.fromkeys(each for word in words for each in word.split()))


def _flow(node: ConfigNode) -> OAuthFlow:
    word = node.text()
    known = _GRANTS.get(word, word.replace("-", "_"))
    return cast("OAuthFlow", known if known in FLOWS else node.one_of(*FLOWS))


def _params(node: ConfigNode | None, audience: ConfigNode | None) -> dict[str, str]:
    params = node.scalars() if node is not None else {}
    for name in params:
        if node is not None and name in _OWN_PARAMS:
            raise node.wrong(f"has {name}, which Pegboard sets itself")
    if audience is not None and (words := _words(audience)):
        params.setdefault("audience", " ".join(words))
    return params


def _address(node: ConfigNode, key: str) -> str:
    address = node.text()
    if "${" not in address and (problem := _address_problem(key, address)):
        raise node.wrong(problem)
    return address


def _address_problem(key: str, address: str) -> str | None:
    if problem := url_problem(address):
        return problem
    if key == "clientMetadataUrl":
        return client_id_problem(address)
    parts = urlsplit(address)
    if key == "redirectUri" and parts.scheme != "https" and not is_loopback_name(host_name(parts.hostname or "")):
        return "must begin with https://, unless it is on this machine"
    return None


def _problem(settings: OAuthSettings) -> str | None:
    """What does not go together."""
    flow, credentials = settings.flow, (settings.client_secret, settings.private_key)
    if any(credentials) and settings.client_id is None:
        return "has a clientSecret or privateKey and no clientId"
    if settings.per == "user" and flow in MACHINE_FLOWS:
        return f'with "per": "user" needs a person: its flow cannot be {flow}'
    if flow == "client_credentials" and not any(credentials):
        return "with the flow client_credentials needs clientId, and clientSecret or privateKey"
    if flow in {"id_jag", "jwt_bearer"} and settings.assertion is None:
        return f"with the flow {flow} needs an assertion"
    if flow == "id_jag" and settings.idp_issuer is None and settings.idp_token_endpoint is None:
        return "with the flow id_jag needs idpIssuer or idpTokenEndpoint"
    return None


def _snake(key: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in key)
