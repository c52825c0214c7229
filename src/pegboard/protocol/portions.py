"""A large text in portions: a transport that is given all of it at once copies it more than once while it waits."""

from __future__ import annotations

from collections.abc import Iterator

# Beyond this size a message is treated as a large one.
LARGE = 1024 * 1024
PORTION = 256 * 1024


def portions(text: bytes | memoryview, more: int = 0) -> Iterator[bytes]:
    """The text piece by piece; each with so many bytes of the next one, for whoever looks for something in it."""
    view = memoryview(text)
    for start in range(0, len(view), PORTION):
        yield bytes(view[start : start + PORTION + more])
