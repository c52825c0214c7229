"""The pages of a list that a server sends: opened as bytes and read item by item, so that no list is too much.

A page is scanned before anything is made of it. What is beyond the limits is never parsed, and the list is cut there.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pegboard import exactjson
from pegboard.catalog.uri_template import MAX_TEMPLATES
from pegboard.log import logger
from pegboard.pace import Pace
from pegboard.protocol import raw_json
from pegboard.protocol.raw_json import Part
from pegboard.result import ToolFailure
from pegboard.servers.errors import unusable_answer

# Limits of one list of one server, over all of its pages.
MAX_ITEMS = 10_000
MAX_BYTES = 16 * 2**20
# And of one item, which is read, checked and written in one step each.
MAX_ITEM_BYTES = 256 * 1024
MAX_ITEM_VALUES = 5000
_MAX_CURSOR = 65_536
_LONGEST_TTL = 365 * 86_400

_items = msgspec.json.Decoder(list[msgspec.Raw])


class Pages:
    """What came of one list so far."""

    def __init__(self, label: str, method: str, key: str) -> None:
        self.items: list[Any] = []
        self.ttl: float | None = None
        # Why something is left out, if it is; and whether that is all of the rest.
        self.cut: str | None = None
        self._has_ended = False
        self._label, self._method, self._key = label, method, key
        # Templates are compared with resources that nobody lists, so that there are fewer of them.
        self._most = MAX_TEMPLATES if key == "resourceTemplates" else MAX_ITEMS
        self._size = 0
        self._cursors: set[str] = set()
        self._pace = Pace()

    async def add(self, result: Part | dict[str, Any]) -> str | None:
        """Read one more page; the cursor of the next one, or `None` at the end."""
        members = _encode(result) if isinstance(result, dict) else raw_json.members(bytes(result))
        if members is None:
            raise unusable_answer(self._label, f"a {self._method} that is not readable")
        page = members.get(self._key, b"")
        if not page.startswith(b"["):
            raise unusable_answer(self._label, f"a {self._method} without {self._key}")
        self._size += len(page)
        if self._size > MAX_BYTES:
            self.end_large()
            return None
        await self._read(page, exactjson.as_list(result.get(self._key)) if isinstance(result, dict) else None)
        self.ttl = _ttl(members.get("ttlMs"), self.ttl)
        return self._next(members.get("nextCursor"))

    async def _read(self, page: bytes, known: list[Any] | None) -> None:
        """Take in the items of a page; `known` are those of one that was read already, having something odd in it."""
        try:
            texts = map(bytes, _items.decode(page))
        except (msgspec.DecodeError, RecursionError):
            if known is None:
                # Nested too deeply: where an item ends is not known, either.
                self._end("the next one cannot be read")
                return
            # Half of a surrogate pair, which only our own parser reads.
            texts = map(exactjson.dump, known)
        for text in texts:
            if len(self.items) == self._most:
                self._end(f"it has more than {self._most:,} items")
                return
            if (reason := _excess(text)) is None:
                self.items.append(_parse(text))
            else:
                self._leave_out(reason)
            if self._pace.is_over:
                await self._pace.rest()

    def _next(self, text: bytes | None) -> str | None:
        if self._has_ended or text is None or len(text) > _MAX_CURSOR:
            return None
        cursor = exactjson.parse(text)
        if cursor is None or cursor == "":
            return None
        if not isinstance(cursor, str) or cursor in self._cursors:
            raise self.endless()
        self._cursors.add(cursor)
        return cursor

    def endless(self) -> ToolFailure:
        """The failure of a list whose pages lead nowhere."""
        return unusable_answer(self._label, f"pages of {self._method} without an end ({len(self.items)} items so far)")

    def end_large(self) -> None:
        """The next page is beyond what all pages may have together; a list without any page before it is refused."""
        reason = f"it is larger than {MAX_BYTES:,} bytes"
        if not self.items:
            raise unusable_answer(self._label, f"a {self._method} that is too much: {reason}")
        self._end(reason)

    def _leave_out(self, reason: str) -> None:
        if self.cut is None:
            self.cut = f"the list of {self._key} lacks number {len(self.items) + 1:,}: {reason}"
            logger().warning("catalog.list.cut", serverName=self._label, method=self._method, reason=self.cut)

    def _end(self, reason: str) -> None:
        self._has_ended = True
        self.cut = f"the list of {self._key} is cut after {len(self.items):,} items: {reason}"
        logger().warning("catalog.list.cut", serverName=self._label, method=self._method, reason=self.cut)


def _excess(text: bytes) -> str | None:
    """What an item has too much of."""
    if len(text) > MAX_ITEM_BYTES:
        return f"it is larger than {MAX_ITEM_BYTES:,} bytes"
    if text.count(b",") + text.count(b"[") + text.count(b"{") <= MAX_ITEM_VALUES:
        return None
    counter = exactjson.ValueCounter()
    counter.feed(text)
    return f"it has more than {MAX_ITEM_VALUES:,} values" if counter.values > MAX_ITEM_VALUES else None


def _parse(text: bytes) -> Any:
    """An item; one that cannot be read is `None`, which is no item."""
    try:
        return exactjson.parse(text)
    except exactjson.NotJson:
        return None


def _encode(result: dict[str, Any]) -> dict[str, bytes]:
    return {key: exactjson.dump(value) for key, value in result.items()}


def _ttl(text: bytes | None, before: float | None) -> float | None:
    """The shortest `ttlMs` of all pages, in seconds; 0 and less mean that the server gave none."""
    ttl = None if text is None or len(text) > _MAX_CURSOR else exactjson.parse(text)
    if isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or ttl <= 0:
        return before
    seconds = min(ttl, _LONGEST_TTL * 1000) / 1000
    return seconds if before is None else min(before, seconds)
