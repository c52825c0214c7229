"""What of a server's entry is secret, by the place where it stands: no log, error or reply may show it."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Callable, Collection, Iterable
from urllib.parse import unquote, unquote_plus, urlsplit, urlunsplit

from pegboard.config.settings import ServerSpec
from pegboard.log import REDACTED

# Taking out what is shorter would tear every message apart.
_MIN_LENGTH = 4
# From this length on a value is taken for a secret although its name does not say so.
_MIN_UNNAMED_LENGTH = 8
_NAME_PART = re.compile(
    r"key|token|secret|pass|pwd|auth|credential|cookie|header|bearer|private|signature|dsn|database_?url|connection",
    re.IGNORECASE,
)
_NAME_WORDS = frozenset(
    {"pat", "conn", "connstr", "sig", "sas", "jwt", "otp", "pin", "pw", "code", "session", "mnemonic", "webhook"}
)
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+")
# Values of such names that are no secrets, and stand in many a message.
_PUBLIC = frozenset({"true", "false", "none", "null", "http", "https", "stdio", "basic", "bearer", "oauth", "token"})
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{0,30}+://[^\s\"'<>`|]+")
_SCHEME = re.compile(r"^(?:bearer|basic|token)\s+", re.IGNORECASE)
_NAME = re.compile(r"-*[A-Za-z][\w.-]*")
# What stands before a value inside of one text: NAME=, NAME:, "name":, --name
_BEFORE_VALUE = re.compile(r"(?<![\w.-])(?:(-*[A-Za-z][\w.-]*)[\"']?\s*[=:]\s*[\"']?|(-+[A-Za-z][\w.-]*)\s+)")
_VALUE = re.compile(r"(?:(?:bearer|basic|token)\s+)?([^\s\"'&;,|]+)", re.IGNORECASE)
# A part of a path that nobody chose as a name.
_KEY_IN_PATH = re.compile(r"[\w.~%+=-]{20,}")
_LETTER, _DIGIT = re.compile("[A-Za-z]"), re.compile(r"\d")

# Told of a secret and whether something there calls it one, it says what is to stand in its place.
_Take = Callable[[str, bool], str]


def is_credential(name: str) -> bool:
    """Whether a variable, an option, a header or a field of this name holds something secret."""
    return _NAME_PART.search(name) is not None or any(word.lower() in _NAME_WORDS for word in _WORD.findall(name))


def secrets_of(spec: ServerSpec, used: Collection[str]) -> frozenset[str]:
    """Every text of this server that is secret; `used` are values that came out of variables."""
    found: dict[bool, set[str]] = {True: set(used), False: set()}

    def take(value: str, is_named: bool) -> str:
        found[is_named].add(value)
        return value

    for value in spec.headers.values():
        found[True] |= {value, value.partition(" ")[2]}
        found[False] |= {piece.partition("=")[2] for piece in re.split(r"[;,\s]+", value)}
    for name, value in spec.env.items():
        if is_credential(name):
            found[True].add(value)
        _visit_text(value, take)
    if spec.oauth:
        found[True] |= {*spec.oauth.secrets}
        found[True] |= {value for name, value in spec.oauth.params.items() if is_credential(name)}
    _visit_args(spec.args, take)
    _visit_url(spec.url or "", take)
    found[True] |= {_SCHEME.sub("", value) for value in found[True]}
    found[False] |= {line.strip() for value in found[True] if "\n" in value for line in value.splitlines()}
    # An address is read without them.
    found[True] |= {re.sub(r"[\t\r\n]", "", value) for value in found[True]}
    named = {value for value in found[True] if len(value) >= _MIN_LENGTH and value.lower() not in _PUBLIC}
    return frozenset(named | {value for value in found[False] if len(value) >= _MIN_UNNAMED_LENGTH})


def display_address(spec: ServerSpec) -> str:
    """Where a server is, its command line or its address, with nothing secret in it."""
    if spec.url is not None:
        return spec.redactor.clean(_visit_url(spec.url, _hide))
    # Cleaned before it is quoted: a secret with a quote in it would not be known again.
    words = map(spec.redactor.clean, [spec.command or "", *_visit_args(spec.args, _hide)])
    return " ".join(word if REDACTED in word else shlex.quote(word) for word in words)


def display_args(args: Iterable[str]) -> list[str]:
    """The arguments of a command, with nothing secret in them."""
    return _visit_args(args, _hide)


def hide_in_address(url: str, mask: Callable[[str], str]) -> str:
    """An address, who we are there, values of its query and keys in its path replaced by what `mask` makes of them."""
    return _visit_url(url, lambda value, _: mask(value))


def hide_secrets(text: str) -> str:
    """A text of any kind, each secret in it that has a name or stands in an address hidden."""
    return _visit_text(text, _hide)


def _hide(_value: str, _is_named: bool) -> str:
    return REDACTED


def _visit_args(args: Iterable[str], take: _Take) -> list[str]:
    """The arguments of a command, each secret in them replaced by what `take` makes of it."""
    visited: list[str] = []
    is_value = False
    for arg in args:
        is_option = arg.startswith("-")
        visited.append(_visit_arg(arg, take, is_value=is_value and not is_option))
        is_value = is_option and (arg == "-H" or ("=" not in arg and is_credential(arg)))
    return visited


def _visit_arg(arg: str, take: _Take, *, is_value: bool) -> str:
    inside = _visit_text(arg, take)
    if is_value:
        # Of `--header "Authorization: Bearer x"` the value alone is secret, too.
        take(arg.partition(":")[2].strip(), True)
        return take(arg, True)
    name, equals, value = arg.partition("=")
    return f"{name}={take(value, True)}" if equals and _NAME.fullmatch(name) and is_credential(name) else inside


def _visit_text(text: str, take: _Take) -> str:
    """A text, each secret in it that has a name or stands in an address replaced by what `take` makes of it."""
    text = _URL.sub(lambda match: _visit_url(match.group(), take), text)
    parts: list[str] = []
    end = 0
    for match in _BEFORE_VALUE.finditer(text):
        value = _VALUE.match(text, match.end()) if is_credential(match[1] or match[2]) else None
        if value is not None and match.start() >= end:
            parts += text[end : value.start(1)], take(value[1], True)
            end = value.end()
    return "".join([*parts, text[end:]])


def _visit_url(url: str, take: _Take) -> str:
    """An address, who we are there, every value of its query and keys in its path replaced likewise."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return take(url, True)
    user, at, host = parts.netloc.rpartition("@")
    fields = [field.partition("=") for field in parts.query.split("&")]
    query = "&".join(
        f"{name}{equals}{_take_both(value, unquote_plus, take, is_credential(unquote_plus(name)))}"
        for name, equals, value in fields
    )
    path = "/".join(_visit_segment(segment, take) for segment in parts.path.split("/"))
    return urlunsplit((parts.scheme, f"{_take_user(user, take)}{at}{host}", path, query, parts.fragment))


def _visit_segment(segment: str, take: _Take) -> str:
    if _LETTER.search(segment) is None or _DIGIT.search(segment) is None:
        return segment
    return _KEY_IN_PATH.sub(lambda match: _take_both(match.group(), unquote, take, False), segment)


def _take_user(user: str, take: _Take) -> str:
    """Who we are at an address; a name without a password is mostly a token."""
    name, colon, password = user.partition(":")
    if password:
        take(base64.b64encode(unquote(user).encode("utf-8", "replace")).decode(), True)
        _take_both(password, unquote, take, True)
    shown = _take_both(name, unquote, take, not password)
    return shown if shown == REDACTED else f"{shown}{colon}{password}"


def _take_both(value: str, meaning: Callable[[str], str], take: _Take, is_named: bool) -> str:
    """As it stands in the address and as it is meant: a message can show either."""
    if not value:
        return value
    take(meaning(value), is_named)
    return take(value, is_named)
