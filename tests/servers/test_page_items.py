"""One item of a server's list that is too much for one step is left out; the others are there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pegboard.servers.pages import Pages

pytestmark = pytest.mark.anyio

SMALL: dict[str, Any] = {"name": "small", "inputSchema": {"type": "object"}}
# Commas and brackets in a text are no values.
TALKATIVE: dict[str, Any] = {"name": "talkative", "description": ",[{" * 3000}


async def read(*items: Any) -> Pages:
    pages = Pages("toy", "tools/list", "tools")
    await pages.add(json.dumps({"tools": items}).encode())
    return pages


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ({"name": "long", "description": "x" * 270_000}, "larger than 262,144 bytes"),
        ({"name": "wide", "inputSchema": {"properties": {f"p{n}": {} for n in range(3000)}}}, "more than 5,000 values"),
    ],
)
async def test_an_item_that_is_too_much_is_left_out(item: dict[str, Any], reason: str) -> None:
    """With a reason, for whoever looks at the server; and the next page is asked for."""
    pages = await read(SMALL, item, TALKATIVE)
    assert pages.items == [SMALL, TALKATIVE]
    assert pages.cut is not None
    assert pages.cut.startswith("the list of tools lacks number 2: ")
    assert reason in pages.cut
    assert await pages.add(b'{"tools":[],"nextCursor":"more"}') == "more"


async def test_what_is_not_too_much_is_read() -> None:
    """Nothing is said where nothing is left out."""
    pages = await read(SMALL, TALKATIVE)
    assert pages.items == [SMALL, TALKATIVE]
    assert pages.cut is None
