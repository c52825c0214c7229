"""The files of the page, as they stand in the package: read when first asked for, and known by their digest."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

STATIC = "/static"
_FOLDER = Path(__file__).parent / "static"
# Every kind of file there is; another one is not served.
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "media-src data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
# Of every page and file: nothing from elsewhere is loaded or run, nobody frames it, and no address of ours leaves.
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # Kept by the browser, and asked for again each time by its digest: an upgrade is seen at once.
    "cache-control": "no-cache",
}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """One file, as it is sent."""

    kind: str
    etag: str
    plain: bytes
    packed: bytes

    def response(self, request: Request, status: int = 200) -> Response:
        """The answer to whoever asks for it."""
        headers = {**HEADERS, "etag": self.etag, "vary": "accept-encoding", "content-type": self.kind}
        if status == 200 and request.headers.get("if-none-match") == self.etag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(self.packed, status, {**headers, "content-encoding": "gzip"})
        return Response(self.plain, status, headers)


@cache
def _names() -> frozenset[str]:
    """Every file there is: what is asked for is looked up here, never on the disk."""
    found = (path for path in _FOLDER.rglob("*") if path.suffix in _TYPES)
    return frozenset(path.relative_to(_FOLDER).as_posix() for path in found)


@cache
def static_file(name: str) -> StaticFile:
    """A file that is there."""
    data = (_FOLDER / name).read_bytes()
    etag = f'"{hashlib.sha256(data).hexdigest()[:20]}"'
    return StaticFile(_TYPES[Path(name).suffix], etag, data, gzip.compress(data, mtime=0))


async def serve_index(request: Request) -> Response:
    """The page."""
    return static_file("index.html").response(request)


async def serve_file(request: Request) -> Response:
    """A file that the page needs."""
    name = str(request.path_params["name"])
    if name not in _names():
        return Response(status_code=404, headers=HEADERS)
    return static_file(name).response(request)
