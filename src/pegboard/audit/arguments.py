"""Arguments as a record has them: a keyed digest, and names or values where the config wants those.

The digest is of canonical JSON, so that equal calls have equal ones, whichever way they came and in whatever order a
client wrote them. Its key is the installation's own: values cannot be guessed from a record alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, cast

import msgspec

from pegboard import exactjson
from pegboard.audit.recorder import DIGEST_BYTES
from pegboard.audit.redaction import Redaction
from pegboard.config.audit_settings import KeptArguments

# Characters of one value, and bytes of all of them.
LONGEST_VALUE = 256
MOST_BYTES = 4096
_MOST_DEPTH = 8
# Of SHA-256.
_BLOCK = 64
# How a digest ends that is not of all of the arguments.
CUT_MARK = "+"
_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)
_sorted = msgspec.json.Encoder(order="sorted")


def canonical_json(text: bytes) -> bytes:
    """The same value, written in the one way."""
    try:
        return _sorted.encode(msgspec.json.decode(text))
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
        # What only we can read: numbers of any size, half of a surrogate pair.
        return exactjson.dump(_sort(exactjson.parse(text)))


class ArgumentsDigest:
    """HMAC-SHA-256 under one key (RFC 2104), whose two halves are begun once."""

    def __init__(self, key: bytes) -> None:
        padded = (key if len(key) <= _BLOCK else sha256(key).digest()).ljust(_BLOCK, b"\0")
        self._inner = sha256(bytes(byte ^ 0x36 for byte in padded))
        self._outer = sha256(bytes(byte ^ 0x5C for byte in padded))

    def __call__(self, text: bytes | None, length: int) -> tuple[int, str]:
        """How long arguments are as canonical JSON, and their digest. None at all are the same as an empty object."""
        if text is None:
            text, length = b"{}", 2
        if length == len(text):
            text = canonical_json(text)
            length = len(text)
        if length <= DIGEST_BYTES:
            return length, self._hmac(text)
        return length, self._hmac(text[:DIGEST_BYTES] + b"\0%d" % length) + CUT_MARK

    def _hmac(self, text: bytes) -> str:
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(text)
        outer.update(inner.digest())
        return outer.hexdigest()


def show_arguments(mode: KeptArguments, text: bytes | None, length: int, tool: str, redaction: Redaction) -> str:
    """Names and types of arguments, or their values without what is secret, as JSON; empty where neither is wanted."""
    if mode == "digest" or text is None:
        return ""
    if length != len(text):
        return _write({"…": f"{length} bytes"})
    arguments = exactjson.parse(text)
    if not isinstance(arguments, dict):
        return ""
    named = cast("dict[str, Any]", arguments)
    if mode == "names":
        return _fit({_cut(name): type_name(value) for name, value in named.items()})
    return _fit({_cut(name): _shorten(value) for name, value in redaction.clean(tool, named).items()})


def type_name(value: object) -> str:
    """What kind of JSON value it is."""
    return next((name for kind, name in _TYPES if isinstance(value, kind)), "null")


def _shorten(value: Any, depth: int = 0) -> Any:
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, exactjson.Number):
        # No float holds it: whoever reads the record could not read it as a number.
        return _cut(value.digits)
    if depth >= _MOST_DEPTH and isinstance(value, (dict, list)):
        return "…"
    if isinstance(value, dict):
        return {_cut(str(name)): _shorten(each, depth + 1) for name, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_shorten(each, depth + 1) for each in cast("list[Any]", value)]
    return value


def _fit(shown: Mapping[str, Any]) -> str:
    """As many members as there is room for."""
    text = _write(shown)
    if len(text.encode()) <= MOST_BYTES:
        return text
    kept: dict[str, Any] = {}
    room = MOST_BYTES - 64
    for name, value in shown.items():
        room -= len(_write({name: value}).encode())
        if room < 0:
            break
        kept[name] = value
    return _write({**kept, "…": f"{len(shown) - len(kept)} more"})


def _write(value: Mapping[str, Any]) -> str:
    return exactjson.dump(value).decode()


def _cut(text: str) -> str:
    shown = text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
    # Half of a surrogate pair can be written, but few can read it.
    return shown if exactjson.is_well_formed(shown) else shown.encode("utf-8", "replace").decode()


def _sort(value: Any) -> Any:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {name: _sort(members[name]) for name in sorted(members)}
    return [_sort(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value
