"""Keys that seal, as people write them: 32 bytes in base64 or hexadecimal digits."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from dataclasses import dataclass, field

KEY_SIZE = 32
ID_SIZE = 8
_SEPARATOR = re.compile(r"[,\s]+")
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]{64}")
_URL_SAFE = str.maketrans("-_", "+/")


@dataclass(frozen=True, slots=True)
class SecretKey:
    """A key, and the id by which a secret names the key that opens it."""

    id: bytes
    key: bytes = field(repr=False)

    @classmethod
    def of(cls, key: bytes) -> SecretKey:
        """A key with its id, which follows from it and says nothing of it."""
        return cls(hashlib.sha256(b"pegboard key id\0" + key).digest()[:ID_SIZE], key)

    @classmethod
    def make(cls) -> SecretKey:
        """A new one."""
        return cls.of(os.urandom(KEY_SIZE))

    @property
    def text(self) -> str:
        """As it is written into a file or a variable."""
        return base64.b64encode(self.key).decode()

    @property
    def name(self) -> str:
        """Its id, for people."""
        return self.id.hex()


def parse_keys(text: str) -> tuple[SecretKey, ...]:
    """The keys of a text, separated by commas or lines; a line that begins with `#` is a remark.

    `ValueError` if there is none, or one that is none; it does not quote the text.
    """
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    words = [word for line in lines for word in _SEPARATOR.split(line) if word]
    if not words:
        raise ValueError("it is empty")
    keys = [SecretKey.of(_decode(number, word)) for number, word in enumerate(words, 1)]
    return tuple(dict.fromkeys(keys))


def _decode(number: int, word: str) -> bytes:
    try:
        if _HEXADECIMAL.fullmatch(word):
            return bytes.fromhex(word)
        bare = word.rstrip("=").translate(_URL_SAFE)
        key = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_SIZE:
        raise ValueError(f"key {number} of it is not 32 bytes in base64 or hexadecimal digits")
    return key
