"""Pictures as their data shows them: their kind and their size."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.toolbox import PNG
from pegboard.formats.pictures import PDF, PICTURES, kind_of, size_of


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", width, height) + b"\x08\x06\x00\x00\x00"


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x00\x00\x00;"


def jpeg(width: int, height: int) -> bytes:
    """With a header, a fill byte and a comment before the frame that has its size."""
    header = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
    return header + b"\xff\xff\xfe\x00\x06\xff\xc0hi" + b"\xff\xc2\x00\x0b\x08" + struct.pack(">HH", height, width)


def webp(kind: bytes, rest: bytes) -> bytes:
    return b"RIFF\x00\x00\x00\x00WEBP" + kind + b"\x00\x00\x00\x00" + rest


def lossless(width: int, height: int) -> bytes:
    return webp(b"VP8L", b"\x2f" + ((width - 1) | (height - 1) << 14).to_bytes(4, "little"))


def extended(width: int, height: int) -> bytes:
    return webp(b"VP8X", bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"))


def lossy(width: int, height: int) -> bytes:
    return webp(b"VP8 ", bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", width, height))


MAKERS = {
    "image/png": [png],
    "image/gif": [gif],
    "image/jpeg": [jpeg],
    "image/webp": [lossless, extended, lossy],
}


@pytest.mark.parametrize(("kind", "make"), [(kind, make) for kind, makers in MAKERS.items() for make in makers])
def test_a_picture_tells_its_kind_and_size(kind: str, make: Callable[[int, int], bytes]) -> None:
    """In every form that models look at."""
    data = make(1200, 9001)
    assert (kind_of(data), size_of(data)) == (kind, (1200, 9001))
    assert kind in PICTURES


def test_a_real_picture() -> None:
    """One pixel."""
    assert size_of(base64.b64decode(PNG)) == (1, 1)


def test_a_document_may_begin_late() -> None:
    """As its readers allow; it has no size."""
    data = b"\n\n%PDF-1.7"
    assert (kind_of(data), size_of(data)) == (PDF, None)


@pytest.mark.parametrize("data", [b"", b"hello", b"RIFF0000WAVEfmt ", b"<svg/>", b"\xff\xd8", b"BM000000"])
def test_anything_else_is_no_picture(data: bytes) -> None:
    """Whatever it is called."""
    assert (kind_of(data), size_of(data)) == (None, None)


@given(
    data=st.sampled_from([make(7, 8) for makers in MAKERS.values() for make in makers]),
    cut=st.integers(0, 60),
    tail=st.binary(max_size=20),
)
def test_broken_data_is_never_an_exception(data: bytes, cut: int, tail: bytes) -> None:
    """Cut off anywhere, and anything behind."""
    size_of(data[:cut] + tail)
