"""Lines cut out of a byte stream, however it arrives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pegboard.servers.line_splitter import LineSplitter


def cut(chunks: list[bytes], limit: int = 10_000) -> tuple[list[bytes], list[tuple[bytes, bytes, int]]]:
    lines: list[bytes] = []
    giants: list[tuple[bytes, bytes, int]] = []
    reader = LineSplitter(
        lambda line: lines.append(line) or (), lambda head, tail, size: giants.append((head, tail, size)), limit
    )
    for chunk in chunks:
        list(reader.feed(chunk))
    reader.finish()
    return lines, giants


@given(st.lists(st.binary(max_size=40)), st.lists(st.integers(0, 200), max_size=20))
def test_lines_do_not_depend_on_how_the_bytes_arrive(parts: list[bytes], cuts: list[int]) -> None:
    """Any cutting of the stream gives the same lines; empty ones are left out."""
    text = b"\n".join(parts)
    places = sorted({place for place in cuts if place < len(text)})
    chunks = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
    expected = [line for line in text.split(b"\n") if line.strip()]
    assert cut(chunks)[0] == expected


@given(st.integers(1, 30), st.integers(1, 7))
def test_a_line_beyond_the_limit_is_dropped_and_the_next_one_is_fine(size: int, step: int) -> None:
    """What is left of a giant is its beginning, its end and its size."""
    giant = bytes(range(65, 65 + size % 26 + 1)) * 3000
    text = b"before\n" + giant + b"\nafter\n"
    chunks = [text[start : start + step * 777] for start in range(0, len(text), step * 777)]
    lines, giants = cut(chunks, limit=2000)
    assert lines == [b"before", b"after"]
    assert giants == [(giant[:4096], giant[-4096:], len(giant))]


def test_a_last_line_without_an_end_counts() -> None:
    """A process that ends in the middle of a line has still said it."""
    assert cut([b"one\ntw", b"o"])[0] == [b"one", b"two"]
