"""Secrets that stand in an entry as they are, instead of coming from variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pegboard.config.secrets import display_address, display_args, is_credential, secrets_of
from pegboard.config.settings import ServerSpec
from pegboard.exactjson import as_list, as_object
from pegboard.log import REDACTED, Redactor

_VARIABLE = re.compile(r"\$\{[^{}]*\}")
# What stands before a credential in a header; the empty text is no credential either.
_SCHEMES = frozenset({"", "bearer", "basic", "token"})
# Headers that say how to talk, and nothing secret.
_PLAIN_HEADERS = frozenset({"accept", "content-type", "user-agent", "accept-language", "mcp-protocol-version"})


def literal_secrets(entry: Mapping[str, Any]) -> list[str]:
    """Where an entry has secrets as they are, each as `env NAME`, `header NAME`, `args` or `url`."""
    env, headers = (_texts(entry.get(key)) for key in ("env", "headers"))
    found = [f"env {name}" for name, value in env.items() if _is_secret(name, value)]
    found += [
        f"header {name}"
        for name, value in headers.items()
        if name.lower() not in _PLAIN_HEADERS and _has_literal(value)
    ]
    args, url = (_without_variables(entry.get(key)) for key in ("args", "url"))
    found += ["args"] if secrets_of(_spec({"args": args}), ()) else []
    return [*found, "url"] if secrets_of(_spec({"url": url}), ()) else found


def has_secret(entry: Mapping[str, Any]) -> bool:
    """Whether an entry has a secret as it is."""
    return bool(literal_secrets(entry))


def display_entry(entry: Mapping[str, Any]) -> str:
    """The command line or the address of an entry, with nothing secret in it."""
    spec = _spec(entry)
    return display_address(replace(spec, secrets=_texts_to_hide(spec)))


def mask_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry to be shown: values of `env` and `headers` only where they are variables or no secrets."""
    shown = dict(entry)
    secret = set(literal_secrets(entry))
    for key, kind in (("env", "env"), ("headers", "header")):
        if members := as_object(entry.get(key)):
            shown[key] = {name: REDACTED if f"{kind} {name}" in secret else value for name, value in members.items()}
    if "url" in secret:
        shown["url"] = display_entry({"url": entry["url"]})
    if "args" in secret:
        spec = _spec(entry)
        redactor = Redactor.of(_texts_to_hide(spec))
        shown["args"] = [redactor.clean(arg) for arg in display_args(spec.args)]
    return shown


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


def _texts_to_hide(spec: ServerSpec) -> frozenset[str]:
    return frozenset(each for each in secrets_of(spec, ()) if _has_literal(each))


def _texts(value: Any) -> dict[str, str]:
    return {name: each for name, each in (as_object(value) or {}).items() if isinstance(each, str)}


def _has_literal(value: str) -> bool:
    return _VARIABLE.sub("", value).strip().lower() not in _SCHEMES


def _without_variables(value: Any) -> Any:
    if isinstance(value, str):
        return _VARIABLE.sub("", value)
    return [_VARIABLE.sub("", each) if isinstance(each, str) else each for each in as_list(value) or []]
