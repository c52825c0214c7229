"""A place in the feed of events, as an id that says nothing to its reader: how many facts there were between two that
somebody may know of would tell of the others. With it stands a digest of what its reader saw at that place."""

from __future__ import annotations

import hmac
import os
from hashlib import blake2b
from typing import NamedTuple

_BYTES = 8
# A nonce, two numbers and a seal, as hexadecimal digits.
_LENGTH = 4 * 2 * _BYTES
_ALPHABET = frozenset("0123456789abcdef")


class FeedPlace(NamedTuple):
    """Behind which fact somebody stands, and what they saw there."""

    number: int
    sight: int = 0


def write_place(key: bytes, place: FeedPlace) -> str:
    """An id of this place, another one each time."""
    nonce = os.urandom(_BYTES)
    hidden = _mix(_mask(key, nonce), place.number.to_bytes(_BYTES) + place.sight.to_bytes(_BYTES))
    return (nonce + hidden + _digest(key, b"seal", nonce + hidden)).hex()


def read_place(key: bytes, place: str) -> FeedPlace | None:
    """The place of an id; `None` if it is none that this key wrote."""
    if len(place) != _LENGTH or not _ALPHABET.issuperset(place):
        return None
    whole = bytes.fromhex(place)
    nonce, hidden, seal = whole[:_BYTES], whole[_BYTES : 3 * _BYTES], whole[3 * _BYTES :]
    if not hmac.compare_digest(seal, _digest(key, b"seal", nonce + hidden)):
        return None
    plain = _mix(_mask(key, nonce), hidden)
    return FeedPlace(int.from_bytes(plain[:_BYTES]), int.from_bytes(plain[_BYTES:]))


def _mask(key: bytes, nonce: bytes) -> bytes:
    return blake2b(nonce, key=key, digest_size=2 * _BYTES, person=b"mask").digest()


def _digest(key: bytes, purpose: bytes, data: bytes) -> bytes:
    return blake2b(data, key=key, digest_size=_BYTES, person=purpose).digest()


def _mix(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
