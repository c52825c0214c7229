"""Large messages: what they consist of is counted in slices before anybody reads them.

To read 32 MB of `[]` takes seconds and gigabytes, to count them a moment.
"""

from __future__ import annotations

from collections.abc import Generator

# Beyond this size a message is looked at first.
LARGE = 1024 * 1024
# Values in one message: members of objects and items of lists, at every depth.
MAX_VALUES = 500_000
_PORTION = 128 * 1024
TOO_MANY = f"more than {MAX_VALUES:,} values in one message"


def has_too_many_values(text: bytes) -> Generator[None, None, bool]:
    """Whether a JSON text has more values than one message may have; in small steps."""
    count, start, in_string = 0, 0, False
    while start < len(text):
        portion = text[start : start + _PORTION]
        # An escape is not cut in two.
        if (len(portion) - len(portion.rstrip(b"\\"))) % 2:
            portion = text[start : start + _PORTION + 1]
        start += len(portion)
        parts = portion.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(parts[1::2] if in_string else parts[::2])
        in_string ^= len(parts) % 2 == 0
        count += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        if count > MAX_VALUES:
            return True
        yield
    return False
