"""Secrets that stand in an entry as they are, instead of coming from variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pegboard.config.aliases import ALL_ALIASES, with_own_keys
from pegboard.config.masking import PLAIN_HEADERS, mask_header, mask_sign_in, mask_url, mask_variable, mask_words
from pegboard.config.oauth_spellings import OAUTH_SECRETS, own_oauth, own_oauth_key
from pegboard.config.secrets import is_credential, secrets_of
from pegboard.config.settings import ServerSpec
from pegboard.exactjson import as_list, as_object

# With what stands for it where it has no value.
_VARIABLE = re.compile(r"\$\{(?:[^{}]*?:-([^{}]*)|[^{}]*)\}")
# What stands before a credential in a header; the empty text is no credential either.
_SCHEMES = frozenset({"", "bearer", "basic", "token"})


def literal_secrets(entry: Mapping[str, Any]) -> list[str]:
    """Where an entry has secrets as they are, each as `env NAME`, `header NAME`, `oauth KEY`, `args` or
    `url`."""
    # Most entries have Pegboard's keys alone.
    entry = with_own_keys(entry) if any(alias in entry for alias in ALL_ALIASES) else entry
    env, headers = (_texts(entry.get(key)) for key in ("env", "headers"))
    found = [f"env {name}" for name, value in env.items() if _is_secret(name, value)]
    found += [
        f"header {name}" for name, value in headers.items() if name.lower() not in PLAIN_HEADERS and _has_literal(value)
    ]
    args, url = (_without_variables(entry.get(key)) for key in ("args", "url"))
    found += [f"oauth {key}" for key, value in _oauth_secrets(entry).items() if _has_literal(value)]
    found += ["args"] if secrets_of(_spec({"args": args}), ()) else []
    return [*found, "url"] if secrets_of(_spec({"url": url}), ()) else found


def has_secret(entry: Mapping[str, Any]) -> bool:
    """Whether an entry has a secret as it is."""
    return bool(literal_secrets(entry))


def mask_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry to be shown to whoever decides about it: hidden is only what can be nothing but a secret."""
    shown = dict(entry)
    for key, mask in (("env", mask_variable), ("headers", mask_header)):
        if members := as_object(entry.get(key)):
            shown[key] = {
                name: mask(name, value) if isinstance(value, str) else value for name, value in members.items()
            }
    for outer in ("oauth", "auth"):
        if members := as_object(entry.get(outer)):
            shown[outer] = {key: mask_sign_in(own_oauth_key(key), value) for key, value in members.items()}
    if isinstance(url := entry.get("url"), str):
        shown["url"] = mask_url(url)
    args = as_list(entry.get("args"))
    if args and all(isinstance(arg, str) for arg in args):
        command = entry.get("command")
        shown["args"] = mask_words(command if isinstance(command, str) else "", args)
    return shown


def _oauth_secrets(entry: Mapping[str, Any]) -> dict[str, str]:
    members = own_oauth(entry) or {}
    return {key: value for key, value in _texts(members).items() if key in OAUTH_SECRETS}


def _is_secret(name: str, value: str) -> bool:
    if is_credential(name):
        return _has_literal(value)
    # An address with a password in it, for instance.
    return bool(secrets_of(_spec({"env": {name: _without_variables(value)}}), ()))


def _spec(entry: Mapping[str, Any]) -> ServerSpec:
    url, command = entry.get("url"), entry.get("command")
    return ServerSpec(
        name="",
        given_name="",
        command=command if isinstance(command, str) else "",
        args=tuple(arg for arg in as_list(entry.get("args")) or [] if isinstance(arg, str)),
        url=url if isinstance(url, str) else None,
        env=_texts(entry.get("env")),
        headers=_texts(entry.get("headers")),
    )


def _texts(value: Any) -> dict[str, str]:
    return {name: each for name, each in (as_object(value) or {}).items() if isinstance(each, str)}


def _has_literal(value: str) -> bool:
    return _cut_variables(value).strip().lower() not in _SCHEMES


def _without_variables(value: Any) -> Any:
    if isinstance(value, str):
        return _cut_variables(value)
    return [_cut_variables(each) if isinstance(each, str) else each for each in as_list(value) or []]


def _cut_variables(value: str) -> str:
    return _VARIABLE.sub(lambda match: match[1] or "", value)
