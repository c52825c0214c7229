"""Pictures and documents as their data shows them, which is what providers go by; names and promises are not."""

from __future__ import annotations

PDF = "application/pdf"
PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
# How far into a file its readers look for the sign of a PDF.
_PDF_HEAD = 1024
# Markers of a JPEG that begin a frame, which has its size, and those that stand alone.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_ALONE = frozenset({0x01, *range(0xD0, 0xDA)})
# Nobody needs more of them before the first frame.
_MOST_MARKERS = 10_000

Size = tuple[int, int]


def kind_of(data: bytes) -> str | None:
    """The kind of a picture or document; `None` for anything that no model looks at."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return PDF if b"%PDF-" in data[:_PDF_HEAD] else None


def size_of(data: bytes) -> Size | None:
    """Width and height of a picture; `None` if its data ends before they are told."""
    try:
        return _READERS[kind_of(data) or ""](data)
    except (IndexError, KeyError):
        return None


def _number(data: bytes, start: int, length: int, order: str = "big") -> int:
    found = data[start : start + length]
    if len(found) < length:
        raise IndexError(start)
    return int.from_bytes(found, "little" if order == "little" else "big")


def _png(data: bytes) -> Size:
    return _number(data, 16, 4), _number(data, 20, 4)


def _gif(data: bytes) -> Size:
    return _number(data, 6, 2, "little"), _number(data, 8, 2, "little")


def _webp(data: bytes) -> Size:
    match data[12:16]:
        case b"VP8X":
            return _number(data, 24, 3, "little") + 1, _number(data, 27, 3, "little") + 1
        case b"VP8L":
            # Fourteen bits each.
            both = _number(data, 21, 4, "little")
            return (both & 0x3FFF) + 1, (both >> 14 & 0x3FFF) + 1
        case _:
            return _number(data, 26, 2, "little") & 0x3FFF, _number(data, 28, 2, "little") & 0x3FFF


def _jpeg(data: bytes) -> Size:
    place = 2
    for _ in range(_MOST_MARKERS):
        marker = _number(data, place + 1, 1)
        if data[place] != 0xFF:
            break
        if marker in _FRAMES:
            return _number(data, place + 7, 2), _number(data, place + 5, 2)
        if marker == 0xFF:
            place += 1
        else:
            place += 2 if marker in _ALONE else 2 + _number(data, place + 2, 2)
    raise IndexError(place)


_READERS = {"image/png": _png, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp}
