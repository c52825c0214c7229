"""What somebody else's entry would do beside its command or address, in lines for whoever decides about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from pegboard import exactjson
from pegboard.config.aliases import with_own_keys
from pegboard.config.literal_secrets import mask_entry
from pegboard.config.read import KEYS
from pegboard.config.variables import names_in
from pegboard.exactjson import as_list, as_object
from pegboard.terminal import visible_json

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:./${}?&~*#\[\]-]+")
# Variables that change how programs start, where they find their settings, or where they take packages from.
STEERING = re.compile(
    r"PATH|PATHEXT|HOME|HOMEDRIVE|HOMEPATH|USERPROFILE|(?:LOCAL)?APPDATA|PROGRAMDATA|SYSTEMROOT|WINDIR|TMPDIR|TE?MP"
    r"|XDG_\w+|(?:LD|DYLD)_\w+|BASH_ENV|ENV|IFS|SHELL|COMSPEC|JAVA_TOOL_OPTIONS|PERL5\w+|RUBY(?:OPT|LIB)"
    r"|NODE_(?:OPTIONS|PATH|EXTRA_CA_CERTS|TLS_\w+)|PYTHON(?:PATH|STARTUP|HOME|USERBASE|INSPECT|BREAKPOINT|WARNINGS)"
    r"|SSL_CERT_\w+|OPENSSL_(?:CONF|MODULES|ENGINES)|(?:REQUESTS|CURL)_CA_BUNDLE|\w*_PROXY|GIT_\w+|SSH_A\w+"
    r"|(?:NPM_CONFIG|UV|PIP|DOCKER|BUILDKIT|DOTNET|COMPLUS|CORECLR|NUGET)_\w+|MSBUILD\w+",
    re.IGNORECASE | re.ASCII,
)
# They stand elsewhere, or decide nothing.
_SHOWN_ELSEWHERE = frozenset({"type", "command", "args", "url", "env", "headers", "cwd", "enabled", "disabled"})


def display_command(entry: Mapping[str, Any], shown: Mapping[str, Any] | None = None) -> str:
    """What an entry runs or where it connects to, word for word: hidden is only what can be nothing but a secret.

    `shown` is the entry as it was masked, if it was.
    """
    shown = mask_entry(with_own_keys(entry)) if shown is None else shown
    if shown.get("command") is None and isinstance(shown.get("url"), str):
        return str(shown["url"])
    return " ".join(map(_word, [shown.get("command") or "", *(as_list(shown.get("args")) or [])]))


def entry_effects(entry: Mapping[str, Any], shown: Mapping[str, Any] | None = None) -> list[str]:
    """All else: the folder, variables and headers, which of the user's variables it gets, and other settings."""
    given = with_own_keys(entry)
    shown = mask_entry(given) if shown is None else shown
    lines = [f"runs in {_word(shown['cwd'])}"] if shown.get("cwd") is not None else []
    lines += [f"env {_word(name)}={_word(value)}" for name, value in _members(shown.get("env"))]
    lines += [f"header {_word(name)}: {_word(value)}" for name, value in _members(shown.get("headers"))]
    lines += [f"{key}: {_word(value)}" for key, value in shown.items() if key in KEYS - _SHOWN_ELSEWHERE]
    return [*lines, *_variable_uses(given), *_steering_variables(given)]


def _variable_uses(entry: Mapping[str, Any]) -> Iterator[str]:
    """Which variables of the user's environment leave it, and where to."""
    target = _target(entry)
    for name in dict.fromkeys(
        name for key in ("command", "args", "cwd", "url", "env", "headers", "oauth") for name in _names(entry.get(key))
    ):
        yield f"gets {_word(name)} of your environment: it goes to {target}"


def _steering_variables(entry: Mapping[str, Any]) -> Iterator[str]:
    for name, _ in _members(entry.get("env")):
        if STEERING.fullmatch(name):
            yield f"sets {_word(name)}, which can change what is run"


def _target(entry: Mapping[str, Any]) -> str:
    if entry.get("command") is not None:
        return "this command"
    try:
        return _word(urlsplit(str(entry.get("url"))).netloc.rpartition("@")[2])
    except ValueError:
        return "this address"


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from names_in(value)
    for each in as_list(value) or (as_object(value) or {}).values():
        yield from _names(each)


def _members(value: Any) -> Iterable[tuple[str, Any]]:
    return (as_object(value) or {}).items()


def _word(value: Any) -> str:
    """A value in one line, as JSON where it is more than a plain word: nothing in it looks like a line of ours."""
    return value if isinstance(value, str) and _PLAIN.fullmatch(value) else visible_json(exactjson.dump(value).decode())
