"""A gateway in front of a server that gives any results: for tests of large ones."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from harness import Entry, Gateway, open_gateway
from pegboard.results.abridge import META_KEY

SHELF = Path(__file__).parents[1] / "servers" / "shelf.py"
GET = "shelf__get"


class Shelf:
    """The folder that such a server gives results of."""

    def __init__(self, folder: Path, **tools: Mapping[str, Any]) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        listed = {"get": {}, **tools}
        definitions = [{"name": name, "inputSchema": {"type": "object"}, **more} for name, more in listed.items()]
        (folder / "tools.json").write_text(json.dumps({"tools": definitions}), "utf-8")

    def entry(self, **more: Any) -> Entry:
        """How it is started."""
        return {"command": sys.executable, "args": ["-I", "-S", str(SHELF), str(self.folder)], **more}

    def put(self, result: Any, name: str = "result") -> dict[str, str]:
        """Have a result given for these arguments; as bytes it is JSON already."""
        written = result if isinstance(result, bytes) else json.dumps(result).encode()
        (self.folder / name).write_bytes(written)
        return {"file": name}


@asynccontextmanager
async def open_shelf(
    tmp_path: Path, entry: Mapping[str, Any] | None = None, tools: Mapping[str, Any] | None = None, **own: Any
) -> AsyncGenerator[tuple[Gateway, Shelf]]:
    """A gateway where clients search for tools, in front of a shelf."""
    shelf = Shelf(tmp_path / "shelf", **(tools or {}))
    usual = {"expose": "search", "toolsets": ["discovery", "results"], "storage": f"sqlite:{tmp_path}/kept.db"}
    settings: dict[str, Any] = {**usual, **own}
    async with open_gateway(tmp_path, {"shelf": shelf.entry(**(entry or {}))}, **settings) as gateway:
        yield gateway, shelf


def about(result: Mapping[str, Any]) -> dict[str, Any]:
    """What a result says of what was left out of it."""
    return (result.get("_meta") or {}).get(META_KEY) or {}


def text_of(result: Mapping[str, Any]) -> str:
    """Its first text."""
    return next(block["text"] for block in result["content"] if block["type"] == "text")


def text_result(text: str, **more: Any) -> dict[str, Any]:
    """A result of one text."""
    return {"content": [{"type": "text", "text": text}], **more}


def records(count: int = 2000) -> list[dict[str, Any]]:
    """Records of about fifty characters."""
    return [
        {"id": number, "title": f"record {number}", "state": "open" if number % 3 else "closed"}
        for number in range(count)
    ]
