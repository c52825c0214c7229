"""Large messages: what they consist of is looked at in slices before anybody reads them.

To read 32 MB of `[]` takes seconds and gigabytes, to count them a moment.
"""

from __future__ import annotations

import codecs
from collections.abc import Generator

# Values in one message: members of objects and items of lists, at every depth.
MAX_VALUES = 500_000
# In anything but the answer to a request that is open: to make objects of so many takes some 20 ms.
MAX_VALUES_OF_OTHERS = 30_000
# A value has a comma, or the bracket around it, and something else: what is shorter than this has few.
SURELY_FEW = 2 * MAX_VALUES_OF_OTHERS
_PORTION = 128 * 1024


def fault(text: bytes, most: int = MAX_VALUES) -> Generator[None, None, str | None]:
    """What is wrong with a JSON text: it is no UTF-8, or has more values than a message may have; in small steps."""
    count, start, in_string = 0, 0, False
    decode = codecs.getincrementaldecoder("utf-8")().decode
    is_text = text.isascii()
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
        if count > most:
            return f"more than {most:,} values in one message"
        if not is_text:
            try:
                decode(portion, start >= len(text))
            except UnicodeDecodeError as exc:
                return f"not valid JSON ({exc.reason})"
        yield
    return None
