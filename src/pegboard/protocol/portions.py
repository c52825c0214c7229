"""A large text in portions: a transport that is given all of it at once copies it more than once while it waits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

# Beyond this size a message is treated as a large one.
LARGE = 1024 * 1024
PORTION = 256 * 1024


def portions(text: bytes | memoryview, more: int = 0) -> Iterator[bytes]:
    """The text piece by piece; each with so many bytes of the next one, for whoever looks for something in it."""
    view = memoryview(text)
    for start in range(0, len(view), PORTION):
        yield bytes(view[start : start + PORTION + more])


def portions_of(pieces: Iterable[bytes | memoryview]) -> Iterator[list[memoryview]]:
    """Pieces of a text in portions: a large one is cut, small ones stand together, and nothing is copied."""
    portion, size = list[memoryview](), 0
    for piece in map(memoryview, pieces):
        for start in range(0, len(piece), PORTION):
            cut = piece[start : start + PORTION]
            portion.append(cut)
            size += len(cut)
            if size >= PORTION:
                yield portion
                portion, size = [], 0
    if portion:
        yield portion
