"""How other clients write the `oauth` section of a server's entry, in Pegboard's words.

Claude Code, OpenCode, VS Code and Gemini CLI have an `oauth` object (or `false`), Cursor an `auth` object with names in
capitals, Codex `scopes` and `oauth_resource` in the entry itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pegboard.exactjson import as_object

# All that the section can say, and what else it is called; spelled in any case, with or without underscores.
OAUTH_KEYS: Mapping[str, tuple[str, ...]] = {
    "clientId": (),
    "clientSecret": (),
    "scopes": ("scope",),
    "callbackPort": (),
    "redirectUri": ("redirectUrl",),
    "authServerMetadataUrl": (),
    "clientMetadataUrl": (),
    "issuer": (),
    "authorizationEndpoint": ("authorizationUrl", "authUrl"),
    "tokenEndpoint": ("tokenUrl",),
    "resource": (),
    "audience": ("audiences",),
    "flow": ("grantType",),
    "privateKey": (),
    "algorithm": (),
    "keyId": ("kid",),
    "assertion": (),
    "idpIssuer": (),
    "idpClientId": (),
    "idpClientSecret": (),
    "idpTokenEndpoint": (),
    "per": (),
    "params": (),
    "allowHttp": (),
    "enabled": (),
}
OAUTH_SECRETS = frozenset({"clientSecret", "privateKey", "assertion", "idpClientSecret"})
# Members of an entry that belong to the section, beside `oauth` itself.
ENTRY_KEYS: Mapping[str, str] = {
    **dict.fromkeys(("scopes", "oauth_scopes", "oauthScopes"), "scopes"),
    **dict.fromkeys(("oauth_resource", "oauthResource"), "resource"),
}
OAUTH_ENTRY_KEYS = frozenset({"oauth", "auth", *ENTRY_KEYS})


def _fold(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


_OWN = {_fold(word): key for key, others in OAUTH_KEYS.items() for word in (key, *others)}


def own_oauth_key(key: str) -> str:
    """Pegboard's word for a key of the section; one that means nothing stays as it is."""
    return _OWN.get(_fold(key), key)


def oauth_places(entry: Mapping[str, Any]) -> dict[str, tuple[str, ...]] | Literal[False] | None:
    """Where in an entry each member of its section stands; `False` if it is switched off, `None` if there is none."""
    if entry.get("oauth") is False:
        return False
    outer = next((key for key in ("oauth", "auth") if as_object(entry.get(key)) is not None), None)
    members = as_object(entry.get(outer)) or {} if outer is not None else {}
    places: dict[str, tuple[str, ...]] = {}
    for key, value in members.items():
        own = own_oauth_key(key)
        if value is not None and (own not in places or key == own):
            places[own] = (outer or "", key)
    if "enabled" in places and members[places.pop("enabled")[1]] is False:
        return False
    for key, own in ENTRY_KEYS.items():
        if entry.get(key) is not None:
            places.setdefault(own, (key,))
    return places or (None if outer is None else {})


def own_oauth(entry: Mapping[str, Any]) -> dict[str, Any] | Literal[False] | None:
    """The section of an entry in Pegboard's words."""
    places = oauth_places(entry)
    if not places:
        return places
    return {key: _at(entry, path) for key, path in places.items()}


def _at(entry: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    return entry[path[0]] if len(path) == 1 else entry[path[0]][path[1]]
