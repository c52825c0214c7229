"""A compressed body, inflated as it comes, in small pieces: how many are too many is for whoever reads them to say."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

CODINGS = frozenset({"gzip", "x-gzip", "deflate"})
# A piece of what comes out, and with it the work that it makes.
_AT_ONCE = 64 * 1024
# Either of gzip and zlib, as the first bytes show; and deflate without a frame, which some servers take the word for.
_FRAMED, _BARE = zlib.MAX_WBITS | 32, -zlib.MAX_WBITS


class Decompressor:
    """What is inside of one body."""

    def __init__(self) -> None:
        # zlib has no public name for its type.
        self._inner: Any = None
        self._first = b""

    @property
    def is_whole(self) -> bool:
        """Whether it ended where it should; a body of nothing at all is whole, too."""
        return not self._first if self._inner is None else self._inner.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The next part of it, in pieces; raises `zlib.error`."""
        if self._inner is None:
            self._first += data
            if len(self._first) < 2:
                return
            data = self._first
            self._inner = zlib.decompressobj(_FRAMED if _is_framed(data) else _BARE)
        more = bool(data)
        while more:
            if self._inner.eof:
                # What follows is the next member, as gzip allows it.
                self._inner = zlib.decompressobj(_FRAMED)
            part = self._inner.decompress(data, _AT_ONCE)
            data = self._inner.unused_data if self._inner.eof else self._inner.unconsumed_tail
            # A piece that is full may have left something behind even where all bytes were taken.
            more = bool(data) or (len(part) == _AT_ONCE and not self._inner.eof)
            if part:
                yield part


def _is_framed(data: bytes) -> bool:
    return data.startswith(b"\x1f\x8b") or (data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0)
