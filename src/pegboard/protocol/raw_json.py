"""Envelopes: JSON-RPC messages opened just far enough to see where they go; what is inside stays the bytes it was.

So a number of any size, an odd escape or the order of keys comes out as it went in, and nobody pays for reading it.
What is looked at here is checked to be JSON to its last byte all the same. Whatever is unusual about a message gives
`None`: then it is read in full elsewhere, by what also has the right words for its faults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from pegboard import exactjson
from pegboard.protocol.eras import SERVER_INFO_KEY
from pegboard.protocol.portions import LARGE

_VERSION = b'"2.0"'
_BRACE = ord("{")
# Python reads no number with more digits.
_MAX_ID = 4300
# A text that is no UTF-8 is told apart from one that is no JSON, but only where it is read.
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """A request of a client; its params are still closed."""

    jsonrpc: Raw
    id: Raw
    method: str
    params: Raw | UnsetType = UNSET


class CallParams(msgspec.Struct, forbid_unknown_fields=True):
    """The params of a plain call; one with any other member is not plain."""

    name: str
    arguments: Raw | UnsetType = UNSET
    meta: Raw | UnsetType = msgspec.field(default=UNSET, name="_meta")


class ListParams(msgspec.Struct, forbid_unknown_fields=True):
    """The params of a plain list: no cursor, since the whole list is on one page."""

    meta: Raw | UnsetType = msgspec.field(default=UNSET, name="_meta")


class Answer(msgspec.Struct, forbid_unknown_fields=True):
    """A server's answer."""

    jsonrpc: Raw
    id: Raw
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class Envelope(msgspec.Struct):
    """Any message, as far as it shows what it is."""

    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET

    @property
    def is_result(self) -> bool:
        """Whether it is an answer, and no error."""
        return self.method is UNSET and self.result is not UNSET

    @property
    def is_question(self) -> bool:
        """Whether an answer is expected."""
        return self.method is not UNSET and self.id is not UNSET

    @property
    def number(self) -> int | None:
        """The number of the request that it answers."""
        number = bytes(self.id) if isinstance(self.id, Raw) and self.method is UNSET else b""
        return int(number) if number.isdigit() and len(number) <= 18 else None

    @property
    def question_id(self) -> object:
        """The id that an answer has to have."""
        return exactjson.parse(bytes(self.id)) if isinstance(self.id, Raw) else None


_batches = msgspec.json.Decoder(list[Raw])
_envelopes = msgspec.json.Decoder(Envelope)
_requests = msgspec.json.Decoder(Request)
_call_params = msgspec.json.Decoder(CallParams)
_list_params = msgspec.json.Decoder(ListParams)
_answers = msgspec.json.Decoder(Answer)
_members = msgspec.json.Decoder(dict[str, Raw])


def request(text: bytes) -> Request | None:
    """The request that a text is."""
    try:
        opened = _requests.decode(text)
    except _UNREADABLE:
        return None
    if bytes(opened.jsonrpc) != _VERSION or not is_request_id(bytes(opened.id)) or not _is_text(text):
        return None
    return opened if _is_read_by_all(text) else None


def envelope(text: bytes) -> Envelope | None:
    """What a text shows of itself; `None` if it is no object, or no JSON."""
    try:
        return _envelopes.decode(text)
    except _UNREADABLE:
        return None


def batch(text: bytes) -> list[Raw] | None:
    """The messages of a batch; `None` if it is none."""
    try:
        return _batches.decode(text)
    except _UNREADABLE:
        return None


def call_params(params: Raw | UnsetType) -> CallParams | None:
    """The params of a plain `tools/call`."""
    if params is UNSET:
        return None
    try:
        opened = _call_params.decode(params)
    except _UNREADABLE:
        return None
    return opened if _is_object_or_null(opened.arguments) and _is_object(opened.meta) else None


def list_params(params: Raw | UnsetType) -> ListParams | None:
    """The params of a plain `tools/list`."""
    if params is UNSET:
        return ListParams()
    try:
        opened = _list_params.decode(params)
    except _UNREADABLE:
        return None
    return opened if _is_object(opened.meta) else None


# A part of a message as it came: a large one is a view on the message, not a copy.
Part = bytes | memoryview


def answer(text: bytes, *, checked: bool = False) -> tuple[int, Part] | None:
    """The number of the request that a text answers, and its result; `None` for anything but a result.

    `checked` says that the text is known to be UTF-8.
    """
    try:
        opened = _answers.decode(text)
    except _UNREADABLE:
        return None
    number = bytes(opened.id)
    if not isinstance(opened.result, Raw) or opened.error is not UNSET or not number.isdigit() or len(number) > 18:
        return None
    result = _part(opened.result) if len(text) > LARGE else bytes(opened.result)
    if result[:1] != b"{" or bytes(opened.jsonrpc) != _VERSION or not (checked or _is_text(text)):
        return None
    return None if exactjson.is_too_deep(text) else (int(number), result)


def parts(text: Part) -> dict[str, Part] | None:
    """The members of an object that is a part of a message, and as such UTF-8."""
    try:
        opened = _members.decode(text)
    except _UNREADABLE:
        return None
    part = _part if len(text) > LARGE else bytes
    return {name: part(value) for name, value in opened.items()}


def members(text: bytes | Raw) -> dict[str, bytes] | None:
    """The members of an object, each as the bytes it is."""
    try:
        opened = _members.decode(text)
    except _UNREADABLE:
        return None
    return {name: bytes(value) for name, value in opened.items()} if _is_text(bytes(text)) else None


def join(members: Mapping[str, bytes]) -> bytes:
    """An object of these members."""
    return b"".join(pieces(members))


def pieces(members: Mapping[str, Part]) -> list[Part]:
    """What the text of an object of these members consists of."""
    found: list[Part] = []
    for name, value in members.items():
        found += (b"," if found else b"{", quote(name), b":", value)
    return [*found, b"}"] if found else [b"{}"]


def quote(text: str) -> bytes:
    """A text as JSON."""
    return msgspec.json.encode(text)


def one_line(text: bytes) -> bytes:
    """The same JSON without line ends, which can only be blanks between its parts."""
    if b"\n" in text or b"\r" in text:
        return text.replace(b"\n", b" ").replace(b"\r", b" ")
    return text


def with_server_info(meta: bytes | None, info: bytes) -> bytes | None:
    """A result's `_meta` that names us as the server."""
    if meta is None:
        return b'{"' + SERVER_INFO_KEY.encode() + b'":' + info + b"}"
    own = members(meta)
    return None if own is None else join({**own, SERVER_INFO_KEY: info})


def _is_read_by_all(text: bytes) -> bool:
    """Whether the full path could read a request too: it may have to go on there."""
    if not exactjson.may_be_deep(text) and (b"\\" not in text or (b"\\ud" not in text and b"\\uD" not in text)):
        return True
    try:
        exactjson.parse(text)
    except exactjson.NotJson:
        return False
    return True


def _part(value: Raw) -> Part:
    view = memoryview(value)
    return view if len(view) > LARGE else bytes(view)


def _is_object(value: Raw | UnsetType) -> bool:
    return isinstance(value, UnsetType) or memoryview(value)[0] == _BRACE


def _is_object_or_null(value: Raw | UnsetType) -> bool:
    return _is_object(value) or bytes(cast("Raw", value)) == b"null"


def is_request_id(value: bytes) -> bool:
    """A text, or a whole number that is written as one and that everybody can read."""
    return is_text(value) or (value.removeprefix(b"-").isdigit() and len(value) <= _MAX_ID)


def is_text(value: bytes) -> bool:
    """Whether a value is a text, without half of a surrogate pair in it."""
    if not value.startswith(b'"'):
        return False
    return b"\\u" not in value or exactjson.is_well_formed(exactjson.parse(value))


def _is_text(data: bytes) -> bool:
    """Whether these bytes are UTF-8, which the decoder does not look at where it only passes over."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
