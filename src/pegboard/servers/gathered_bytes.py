"""Bytes of one message that come in parts."""

from __future__ import annotations

from io import BytesIO

from pegboard.protocol.portions import LARGE

_SMALL = 4096


class GatheredBytes:
    """What came so far. A large message is put together as it comes: to join 50 MB at its end would hold the loop."""

    __slots__ = ("_buffer", "_parts", "size")

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[bytes] = []
        self._buffer: BytesIO | None = None

    def add(self, part: bytes) -> None:
        """Take the next part; small ones become one, since each costs more than its bytes."""
        self.size += len(part)
        if self.size == len(part):
            # Most messages come in one.
            self._parts = [part]
        elif self._buffer is not None:
            self._buffer.write(part)
        elif self.size > LARGE:
            self._buffer = BytesIO()
            self._buffer.writelines([*self._parts, part])
            self._parts.clear()
        elif self._parts and len(self._parts[-1]) < _SMALL:
            self._parts[-1] += part
        else:
            self._parts.append(part)

    def take(self) -> bytes:
        """All of it; what comes then begins anew."""
        if self._buffer is not None:
            whole, self._buffer = self._buffer.getvalue(), None
        else:
            whole = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            self._parts.clear()
        self.size = 0
        return whole
