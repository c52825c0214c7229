"""An entry for a page, without its values: nothing that may be a secret is in it.

`masking` is for whoever decides about somebody else's entry, where hiding a command would be worse than showing a
secret. Here it is the other way round: the entry is one's own, and in doubt a value is hidden.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pegboard.config.aliases import with_own_keys, with_own_tools
from pegboard.config.masking import is_secret_name, is_switch
from pegboard.config.oauth_spellings import OAUTH_KEYS, OAUTH_SECRETS
from pegboard.config.secrets import display_args, hide_secrets, is_credential
from pegboard.exactjson import as_list, as_object
from pegboard.log import REDACTED
from pegboard.secret_forms import redact_text

_Mask = Callable[[str], str]
_VARIABLE = re.compile(r"(?<!\$)(\$\{(?:(?:env:)?\w+|input:[\w.-]+|(?:file|keyring):[^{}]*)\})", re.ASCII)
# With all that may belong to a default that has braces in it.
_BRACES = re.compile(r"\$?\$\{[^{}]*?(?::-[^{}]*\}(?:(?:(?!\$\{)[^}])*\})*|\})", re.DOTALL)
# One that has another opening brace in it is none, and may be a secret all the same.
_BROKEN_DEFAULT = re.compile(r"(\$\{(?:(?!\$\{)[^}])*?:-).*", re.DOTALL)
_SCHEMES = frozenset({"bearer", "basic", "token"})
# Nobody reads more, and the time it takes to find secrets in it grows faster than it does.
_LONGEST = 8192
# Of a word that nobody chose as a name.
_PIECE = re.compile(r"[A-Za-z0-9_+=~.-]+")
_RUN = re.compile(r"[A-Za-z0-9]{12,}")
_IDENTIFIER = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_LONG_RANDOM = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9+/_-]{20,}={0,2}")
_PATH = re.compile(r"\.{0,2}[/\\]|~|[A-Za-z]:[/\\]|@")
_NAMED = re.compile(r"([\"'{\s]*-*([A-Za-z][\w.-]*)[\"']?\s*[:=]\s*).+", re.DOTALL)
# One letter says nothing of what it is for: these are mostly for passwords, users, tokens, keys and headers.
_SHORT_OPTION = re.compile(r"-[uUpPtTkKHaA]")
# Such an option with its value in one word. Some programs have words behind a single dash.
_GLUED = re.compile(r"(-[uUpPtTkKHaA])([^-=\s].{2,})", re.DOTALL)
_WORD_OPTIONS = frozenset(
    [
        "accept",
        "access",
        "addr",
        "address",
        "admin",
        "agent",
        "all",
        "allow",
        "api",
        "app",
        "args",
        "auth",
        "host",
        "keep",
        "key",
        "kind",
        "package",
        "params",
        "pass",
        "password",
        "path",
        "pkg",
        "port",
        "pretty",
        "print",
        "profile",
        "project",
        "prompt",
        "proxy",
        "public",
        "tag",
        "target",
        "test",
        "timeout",
        "title",
        "tls",
        "token",
        "tools",
        "toolset",
        "toolsets",
        "trace",
        "transport",
        "type",
        "unix",
        "update",
        "upgrade",
        "uri",
        "url",
        "use",
        "user",
        "username",
    ]
)
_USER_OPTIONS = frozenset({"user", "username", "login"})
# Options of containers, before a variable and its value.
VARIABLE_OPTIONS = frozenset({"-e", "--env"})
_ASSIGNMENT = re.compile(r"((?:-e|--env=?)?)([A-Za-z_][\w.]*)=(.+)", re.DOTALL)
_HARMLESS = re.compile(r"[0-9]{1,5}(?::[0-9]{1,5})?|stdio|http|sse|streamable-http")
# Who we are at an address, also where a password has letters that an address cannot have.
_USER = re.compile(r"(?<=://)[^/@:\s]*:(?![0-9]+(?:/|$)).*(?=@)|\A[^\s/@:]+:[^\s/@]+(?=@)", re.DOTALL)
_MARK = "\ue000"
_SEVERAL_WORDS = re.compile(r"[\s\"'`]")
_NOT_A_NAME = re.compile(r"[^A-Z0-9]+")
# Values that say how and where something works: words, numbers, switches, regions, languages, places.
_PLAIN_VALUE = re.compile(
    r"[A-Za-z]{0,12}|--?[a-z][a-z-]{0,20}|[0-9]{1,6}(?:[.:-][0-9]{1,6}){0,3}|[0-9]{1,6}(?:ms|[smhd])|utf-?8"
    r"|[a-z]{2}(?:-[a-z]{4,10}){1,2}-[0-9]|[a-z]{2}[_-][A-Z]{2}(?:\.[Uu][Tt][Ff]-?8)?|[A-Z][a-z]{2,12}/[A-Z][A-Za-z_]{1,20}"
    r"|streamable-http|localhost(?::[0-9]{1,5})?"
)
_FILE_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\][\w.@ ,+:~/\\-]*")
_PLAIN_ADDRESS = re.compile(r"(https?://[A-Za-z0-9.-]+(?::[0-9]{1,5})?)((?:[/?#].*)?)", re.DOTALL)
_PLAIN_PATH = re.compile(r"(?:/(?:[a-z]{1,16}|v[0-9]{1,2}))*/?")
_TEXTS = frozenset({"command", "cwd", "envFile"})
_PLAIN = frozenset({"type", "instance", "prefix", "enabled", "disabled", "apiKeyFromEnv", "tools", "keywords"}) | {
    *("timeout", "connectTimeout", "startTimeout", "idleTimeout", "ttl")
}
_ADDRESSES = frozenset(key for key in OAUTH_KEYS if key.endswith(("Url", "Uri", "Endpoint"))) | {
    *("issuer", "idpIssuer", "resource", "audience")
}
_PATTERNS = frozenset({"allow", "deny", "readOnly"})


def hide_values(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry in Pegboard's words: of variables and headers only that they are set and from where, and what else may
    be secret hidden."""
    own = with_own_tools(with_own_keys(entry))
    shown = _hide_others(own)
    for key in ("env", "headers"):
        if own.get(key) is not None:
            members = as_object(own[key]) or {}
            shown[key] = {name: {"set": True, **_source(value)} for name, value in members.items()}
    return shown


def with_variables(entry: Mapping[str, Any], server: str) -> dict[str, Any]:
    """The entry to be used elsewhere: what may be secret comes from variables there. What means nothing to Pegboard is
    left out."""
    own = with_own_tools(with_own_keys(entry))
    known = _TEXTS | _PLAIN | {"args", "url", "oauth"}
    numbers = count(1)
    made: dict[str, Any] = {
        key: _fill(value, server, key, numbers) for key, value in _hide_others(own).items() if key in known
    }
    for key in ("env", "headers"):
        if members := as_object(own.get(key)):
            made[key] = {name: _source(value).get("from", _variable(server, name)) for name, value in members.items()}
    return made


def hide_variable(name: str, value: str) -> str:
    """The value of a variable, if by its name and its form it is surely no secret: a path, a number, a word."""
    text = _cut_defaults(value)
    if is_credential(name):
        is_path = not is_secret_name(name) and _is_plain_path(text)
        return text if is_path else _mask_literals(text, _hide)
    return _mask_literals(text, _hide_doubtful)


def _hide_doubtful(text: str) -> str:
    if _PLAIN_VALUE.fullmatch(text) or _is_plain_path(text):
        return text
    address = _PLAIN_ADDRESS.fullmatch(text)
    if address is None:
        return REDACTED
    # Where it leads to is seen; a path may be the secret, as that of a webhook is.
    return text if _PLAIN_PATH.fullmatch(address[2]) else f"{address[1]}/{REDACTED}"


def _is_plain_path(text: str) -> bool:
    return _FILE_PATH.fullmatch(text) is not None and not any(map(_is_mixed, re.split(r"[/\\:]", text)))


def _is_mixed(word: str) -> bool:
    """Whether somebody would rather draw such a word than choose it."""
    return _LONG_RANDOM.fullmatch(word) is not None or redact_text(word) != word


def _hide_others(own: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _hide_member(own, key, value) for key, value in own.items() if key not in {"env", "headers"}}


def _hide_member(own: Mapping[str, Any], key: str, value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if key == "args":
        return hide_args(own.get("command"), value)
    if key == "url":
        return _hide_address(value) if isinstance(value, str) else REDACTED
    if key == "oauth":
        members = as_object(value)
        return REDACTED if members is None else {name: _hide_sign_in(name, each) for name, each in members.items()}
    if key in _TEXTS:
        return _hide_text(value) if isinstance(value, str) else REDACTED
    return _hide_plain(key, value) if key in _PLAIN else REDACTED


def _hide_plain(key: str, value: Any) -> Any:
    """A value that is no secret if it is what its key is for."""
    if key in {"tools", "keywords"}:
        members = as_object(value)
        if members is None:
            return value if key == "tools" and isinstance(value, str) else REDACTED
        return {
            name: each if _are_texts(each) and (key == "keywords" or name in _PATTERNS) else REDACTED
            for name, each in members.items()
        }
    if isinstance(value, str):
        return _hide_random(value, _hide_text(value))
    return value if isinstance(value, (int, float)) else REDACTED


def _are_texts(value: Any) -> bool:
    texts = as_list(value)
    return isinstance(value, str) or (texts is not None and all(isinstance(each, str) for each in texts))


def _hide_sign_in(key: str, value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if key == "params" and (params := as_object(value)) is not None:
        return {name: _hide_value(each) for name, each in params.items()}
    if key in OAUTH_SECRETS or key not in OAUTH_KEYS:
        return _hide_value(value)
    mask = _hide_address if key in _ADDRESSES else _hide_text
    if (texts := as_list(value)) is not None:
        return [mask(each) if isinstance(each, str) else REDACTED for each in texts]
    return mask(value) if isinstance(value, str) else value if isinstance(value, int) else REDACTED


def _hide_value(value: Any) -> str:
    return _mask_literals(_cut_defaults(value), _hide) if isinstance(value, str) else REDACTED


def hide_args(command: Any, value: Any) -> list[Any]:
    """The arguments. What no option names, and what is no word of any kind, is hidden, too."""
    given = as_list(value)
    if given is None or not all(isinstance(arg, (str, int, float)) for arg in given):
        return [REDACTED]
    args = [_hide_users_of_argument(_cut_defaults(str(arg))) for arg in given]
    shown: list[Any] = []
    option = ""
    for arg, plain, original in zip(args, display_args(args), given, strict=True):
        is_value = bool(option) and not arg.startswith("-")
        if (variable := _find_variable(args[len(shown) - 1] if shown else "", arg)) is not None:
            masked = f"{variable[1]}{variable[2]}={hide_variable(variable[2], variable[3])}"
        elif is_value or (len(option) > len("-x") and is_credential(option)):
            masked = _mask_literals(arg, _hide)
        elif _without_variables(arg) == "":
            masked = arg
        else:
            masked = _hide_glued(redact_text(_hide_random(arg, _hide_named(arg, plain))))
        is_same = isinstance(original, (int, float)) and masked == arg
        shown.append(original if is_same else masked.replace(_MARK, REDACTED))
        option = arg if _has_secret_value(command, arg, args[len(shown)] if len(shown) < len(args) else "") else ""
    return shown


def _has_secret_value(command: Any, option: str, value: str) -> bool:
    if not option.startswith("-") or "=" in option:
        return False
    is_harmless = _HARMLESS.fullmatch(value) is not None
    if option.lstrip("-") in _USER_OPTIONS:
        return ":" in value and not is_harmless
    if _SHORT_OPTION.fullmatch(option) is None:
        return is_credential(option)
    return not is_harmless and not (isinstance(command, str) and is_switch(command, option))


def _find_named(arg: str) -> re.Match[str] | None:
    """The parts of an argument that names a secret and has its value."""
    named = _NAMED.fullmatch(arg)
    if named is None:
        return None
    is_user = arg.startswith("--") and named[2] in _USER_OPTIONS and ":" in arg[named.end(1) :]
    return named if is_user or is_credential(named[2]) else None


def _find_variable(option: str, arg: str) -> re.Match[str] | None:
    """The parts of an argument that sets a variable, if it is one: its option, the name, and the value."""
    found = _ASSIGNMENT.fullmatch(arg)
    return found if found is not None and (found[1] or option in VARIABLE_OPTIONS) else None


def _hide_glued(arg: str) -> str:
    """`-pSECRET` is `-p SECRET`."""
    glued = _GLUED.fullmatch(arg)
    if glued is None or _HARMLESS.fullmatch(glued[2]) or re.split("[-_=]", arg[1:])[0] in _WORD_OPTIONS:
        return arg
    return f"{glued[1]}{_mask_literals(glued[2], _hide)}"


def _hide_users_of_argument(arg: str) -> str:
    """What stands behind the name of a secret is no address, whatever signs are in it."""
    return _hide_users(arg) if _find_named(arg) is None else arg


def _hide_named(arg: str, plain: str) -> str:
    """Behind the name of a secret everything is hidden: it may have spaces and quotes in it."""
    if (named := _find_named(arg)) is not None:
        return f"{named[1]}{_mask_literals(arg[named.end(1) :], _hide)}"
    return _cut_words(arg, plain)


def _cut_words(text: str, shown: str) -> str:
    """Where a secret ends in a text of several words cannot be told."""
    begin, hidden, _ = shown.partition(REDACTED)
    return f"{begin}{hidden}" if hidden and _SEVERAL_WORDS.search(text) else shown


def _hide_random(arg: str, plain: str) -> str:
    name, equals, value = plain.partition("=") if arg.startswith("-") else ("", "", plain)
    if _PATH.match(value if equals else plain) or REDACTED in value:
        return plain
    return f"{name}{equals}{_mask_literals(value, _hide_random_words)}"


def _hide_random_words(text: str) -> str:
    if _LONG_RANDOM.fullmatch(text):
        return REDACTED
    return _PIECE.sub(lambda piece: REDACTED if _is_random(piece.group()) else piece.group(), text)


def _is_random(text: str) -> bool:
    """Whether it has letters and digits that make no word."""
    runs: list[str] = _RUN.findall(text)
    return _IDENTIFIER.search(text) is not None or any(not run.isalpha() and not run.isdigit() for run in runs)


def _hide_text(text: str) -> str:
    text = _hide_users(_cut_defaults(text))
    return _cut_words(text, hide_secrets(text)).replace(_MARK, REDACTED)


def _hide_users(text: str) -> str:
    """The text with a mark in the place of who we are; brackets would make it no address."""
    return _USER.sub(lambda match: _mask_literals(match.group(), lambda part: part if part == ":" else _MARK), text)


def _hide_address(url: str) -> str:
    """An address with its host and the plain words of its path."""
    url = _hide_users(_cut_defaults(url))
    try:
        parts = urlsplit(url)
    except ValueError:
        return REDACTED
    user, at, host = parts.netloc.rpartition("@")
    # Somebody may have written the address without its beginning.
    path = re.sub(r"(?<![^/\\])[^/\\]+@", lambda match: f"{_mask_literals(match.group()[:-1], _hide)}@", parts.path)
    path = "/".join(_mask_literals(part, _hide_segment) for part in path.split("/"))
    query = "&".join(_hide_field(part) for part in parts.query.split("&")) if parts.query else ""
    netloc = f"{_mask_literals(user, _hide_user)}{at}{host}"
    shown = urlunsplit((parts.scheme, netloc, path, query, _mask_literals(parts.fragment, _hide)))
    return shown.replace(_MARK, REDACTED)


def _hide_user(text: str) -> str:
    return text if text == ":" else REDACTED


def _hide_segment(text: str) -> str:
    if text == REDACTED or text.startswith(f"{REDACTED}@"):
        return text
    # Of a path with parameters in it the beginning is enough.
    word, semicolon, _ = text.partition(";")
    if _is_random(word) or hide_secrets(word) != word:
        return REDACTED
    return f"{word}{semicolon}{REDACTED if semicolon else ''}"


def _hide_field(field: str) -> str:
    name, _, value = field.partition("=")
    # What has no value is one, and so is a key that ends with the sign.
    is_name = value.strip("=") and not _is_random(name)
    return f"{name}={_mask_literals(value, _hide)}" if is_name else _mask_literals(field, _hide)


def _source(value: Any) -> dict[str, str]:
    """Where a value comes from, if all of it is variables."""
    if not isinstance(value, str):
        return {}
    text = _cut_defaults(value)
    scheme, _, others = text.strip().partition(" ")
    is_reference = "${" in text and not _without_variables(others if scheme.lower() in _SCHEMES else text).strip()
    return {"from": text} if is_reference else {}


def _cut_defaults(text: str) -> str:
    if len(text) > _LONGEST:
        return REDACTED
    return _BROKEN_DEFAULT.sub(rf"\1{REDACTED}", _BRACES.sub(_cut_default, text))


def _cut_default(match: re.Match[str]) -> str:
    """A variable without what stands for it where it has no value; what is no variable is hidden."""
    name = f"{match.group().partition(':-')[0].removesuffix('}')}}}"
    return name if _VARIABLE.fullmatch(name) else REDACTED


def _without_variables(text: str) -> str:
    return _VARIABLE.sub("", text)


def _mask_literals(text: str, mask: _Mask) -> str:
    parts = _VARIABLE.split(text)
    return "".join(part if at % 2 or not part else mask(part) for at, part in enumerate(parts))


def _hide(_: str) -> str:
    return REDACTED


def _fill(value: Any, server: str, name: str, numbers: Iterator[int]) -> Any:
    """The value with a variable in each place where something is hidden."""
    if isinstance(value, str):
        return re.sub(re.escape(REDACTED), lambda _: _count_variable(server, name, numbers), value)
    if (members := as_object(value)) is not None:
        return {key: _fill(each, server, key, numbers) for key, each in members.items()}
    return value if (items := as_list(value)) is None else [_fill(each, server, name, numbers) for each in items]


def _count_variable(server: str, name: str, numbers: Iterator[int]) -> str:
    if name in OAUTH_KEYS:
        return _variable(server, name)
    number = next(numbers)
    return _variable(server, "secret" if number == 1 else f"{server} secret {number}")


def _variable(server: str, name: str) -> str:
    word = _NOT_A_NAME.sub("_", name.upper()).strip("_")
    return f"${{{word if '_' in word else f'{server.upper()}_{word}'}}}"
