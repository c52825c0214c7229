"""Batches: several messages in one, which only the version 2025-03-26 has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mcp_types import JSONRPCRequest, RequestId
from msgspec import DecodeError, Raw
from msgspec.json import Decoder

from pegboard import exactjson
from pegboard.protocol.message import NotAMessage, fault, refusal
from pegboard.sdk.exact_message import ExactMessage

# The one version whose clients may send batches, and whose servers must take them.
BATCH_VERSION = "2025-03-26"
MAX_BATCH = 100
_NO_BATCH = f"a batch of messages is taken in a session of {BATCH_VERSION} alone; send them one by one"
_elements = Decoder(list[Raw])


class BatchRefused(ValueError):  # noqa: N818  it names an answer
    """A batch that is not taken as a whole."""


@dataclass(slots=True)
class Batch:
    """The messages of a batch, and the answers to those that are none."""

    messages: list[ExactMessage] = field(default_factory=list[ExactMessage])
    refusals: list[bytes] = field(default_factory=list[bytes])

    @classmethod
    def of(cls, text: bytes, version: str | None, is_busy: Callable[[RequestId], bool]) -> Batch:
        """Take a batch apart; `BatchRefused` says why it is not taken, `NotJson` that it is none. `is_busy` tells
        whether a request with this id is under way."""
        elements = _texts(text)
        if version != BATCH_VERSION:
            raise BatchRefused(_NO_BATCH)
        if not elements:
            raise BatchRefused("the batch is empty")
        if len(elements) > MAX_BATCH:
            raise BatchRefused(f"a batch may have {MAX_BATCH} messages at most, found {len(elements)}")
        batch, ids = cls(), set[str]()
        for element in elements:
            read = _read(element, lambda request_id: str(request_id) in ids or is_busy(request_id))
            if isinstance(read, bytes):
                batch.refusals.append(read)
                continue
            batch.messages.append(read)
            if isinstance(read.message, JSONRPCRequest):
                # The SDK tells requests apart by the text of their ids.
                ids.add(str(read.message.id))
        return batch

    @property
    def request_ids(self) -> list[RequestId]:
        """The ids of what is to be answered."""
        return [read.message.id for read in self.messages if isinstance(read.message, JSONRPCRequest)]


def _read(text: bytes, is_taken: Callable[[RequestId], bool]) -> ExactMessage | bytes:
    """One message of a batch, or the answer to what is none."""
    if (reason := fault(text)) is not None:
        return refusal(reason)
    try:
        read = ExactMessage.read(text)
    except NotAMessage:
        return refusal("a result must be an object, and an error must have a code and a message")
    if isinstance(read.message, JSONRPCRequest):
        if read.message.method == "initialize":
            return refusal("initialize must not be part of a batch", exactjson.dump(read.message.id))
        if is_taken(read.message.id):
            return refusal("another request has the same id")
    return read


def join_answers(answers: list[bytes]) -> bytes:
    """The answers to a batch as one."""
    return b"[" + b",".join(answers) + b"]"


def _texts(text: bytes) -> list[bytes]:
    """The messages of a batch, each as a text."""
    try:
        elements = [bytes(element) for element in _elements.decode(text)]
        text.decode()
    except (DecodeError, UnicodeDecodeError, RecursionError):
        # It may have half of a surrogate pair in it, which only our own parser reads.
        return [exactjson.dump(element) for element in exactjson.as_list(exactjson.parse(text)) or []]
    return elements
