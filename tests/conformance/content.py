"""The smallest honest image and sound, and fast paths to build content blocks."""

import base64
import io
import struct
import wave
import zlib
from typing import Final

import mcp_types as types


def _png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _red_pixel_png() -> bytes:
    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    scanline = b"\x00\xff\x00\x00"
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(scanline)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_png_chunk(kind, body) for kind, body in chunks)


def _silent_wav() -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(8000)
        sound.writeframes(b"\x80" * 8)
    return buffer.getvalue()


PNG_BASE64: Final = base64.b64encode(_red_pixel_png()).decode()
WAV_BASE64: Final = base64.b64encode(_silent_wav()).decode()


def text(words: str) -> types.TextContent:
    return types.TextContent(text=words)


def image() -> types.ImageContent:
    return types.ImageContent(data=PNG_BASE64, mime_type="image/png")


def audio() -> types.AudioContent:
    return types.AudioContent(data=WAV_BASE64, mime_type="audio/wav")


def embedded(uri: str, mime_type: str, words: str) -> types.EmbeddedResource:
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=words))


def tool_text(words: str) -> types.CallToolResult:
    return types.CallToolResult(content=[text(words)])
