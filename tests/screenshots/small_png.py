"""A picture of a page with 256 colours at most, which is enough for text and half as large."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
from playwright.sync_api import Page

_MOST = 256
# A browser reads the picture: its pixels, four bytes each.
_PIXELS = """
async (png) => {
  const picture = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
  const canvas = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
  canvas.drawImage(picture, 0, 0);
  const { data } = canvas.getImageData(0, 0, picture.width, picture.height);
  let text = "";
  for (let at = 0; at < data.length; at += 32768) text += String.fromCharCode(...data.subarray(at, at + 32768));
  return [picture.width, picture.height, btoa(text)];
}
"""


def shrink(reader: Page, png: bytes) -> bytes:
    """The same picture in some of its colours; each other one becomes the nearest of these."""
    width, height, text = reader.evaluate(_PIXELS, base64.b64encode(png).decode())
    rgb = np.frombuffer(base64.b64decode(text), np.uint8).reshape(-1, 4)[:, :3]
    packed = rgb.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    found, index, numbers = np.unique(packed, return_inverse=True, return_counts=True)
    colours = np.stack([found >> 16 & 255, found >> 8 & 255, found & 255], axis=1).astype(np.uint8)
    palette = colours[_choose(colours, np.argsort(-numbers, kind="stable"))]
    apart = colours[:, None].astype(np.int32) - palette[None].astype(np.int32)
    nearest = (apart**2).sum(axis=2).argmin(axis=1).astype(np.uint8)
    return _indexed(width, height, palette, nearest[index.ravel()].reshape(height, width))


def _choose(colours: Any, by_use: Any) -> Any:
    """Which colours stay: of each hue the one that is used most, then whichever are used most."""
    hues = (colours[by_use] >> 5).astype(np.uint32) @ np.array([64, 8, 1], np.uint32)
    _, first = np.unique(hues, return_index=True)
    order = np.concatenate([by_use[np.sort(first)[: _MOST // 2]], by_use])
    _, places = np.unique(order, return_index=True)
    return order[np.sort(places)][:_MOST]


def _indexed(width: int, height: int, palette: Any, index: Any) -> bytes:
    rows = np.concatenate([np.zeros((height, 1), np.uint8), index], axis=1).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = [(b"IHDR", head), (b"PLTE", palette.tobytes()), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
