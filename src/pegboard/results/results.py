"""What the board has of large results: it makes a result fit its cap, and reads what is kept of one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from pegboard.clients.caller import Caller
from pegboard.clients.client import REST_CLIENT, Client
from pegboard.config import ServerSpec, Settings
from pegboard.listing.lists import Lists
from pegboard.log import logger
from pegboard.protocol.eras import LATEST_MODERN
from pegboard.protocol.raw_json import Part
from pegboard.protocol.weight import weight
from pegboard.results.abridge import Note, abridge
from pegboard.results.caps import LEAST_OF_ERRORS, USUAL_CAP, Caps, is_agent
from pegboard.results.contents import ResultTexts, least_size, parse_result, texts_of
from pegboard.results.handles import fill_handles, has_handle, refuse_handles
from pegboard.results.json_part import JsonPart, find_json
from pegboard.results.keeper import URI, ResultKeeper, expiry, owner_of
from pegboard.results.reader import ResultQuery, ResultReader, carry
from pegboard.results.room import Room
from pegboard.results.turns import Turns
from pegboard.servers.message import Message
from pegboard.storage.results import ResultOwner, ResultStore
from pegboard.tool import RegisteredTool

# Results whose text takes part in no cap: the tools that find others, whose schemas are needed whole, and the one that
# reads kept results, which knows the cap itself.
EXEMPT = frozenset({"discovery", "results"})
# Links to resources are content since this version.
_LINKS_SINCE = "2025-06-18"
_SMALL = 64 * 1024
_LARGE = 4 * 1024 * 1024
# So many results are abridged at once, of one principal and of all; of large ones fewer, since each is in memory more
# than once meanwhile.
_AT_ONCE, _LARGE_AT_ONCE = (4, 12), (1, 3)
# What a page has for whoever has no cap.
_PAGE_WITHOUT_CAP = 1_000_000


class Results:
    """Large results of one board."""

    def __init__(
        self,
        store: ResultStore,
        settings: Callable[[], Settings],
        lists: Lists,
        can_read: Callable[[Client], bool],
    ) -> None:
        self._can_read = can_read
        self._settings = settings
        self.caps = Caps(settings, lists, can_read)
        self.keeper = ResultKeeper(store)
        self.reader = ResultReader(self.keeper)
        self._room = Room()
        self._turns, self._turns_of_large = Turns(*_AT_ONCE), Turns(*_LARGE_AT_ONCE)

    async def open(self) -> None:
        """Begin: the storage is open."""
        await self.keeper.open()

    async def close(self) -> None:
        """Finish what is under way."""
        await self.keeper.close()

    def cap(self, client: Client, tool: RegisteredTool, asked: int | None = None) -> int:
        """How many characters a result of this tool may have for this client; 0 for any number."""
        return 0 if tool.toolset in EXEMPT else self.caps.find(client, tool, asked)

    async def fit(self, result: Message, client: Client, tool: RegisteredTool, asked: int | None = None) -> Message:
        """The result, or one that says the same in as many characters as it may have."""
        cap = self.cap(client, tool, asked)
        # What asks for input is no result yet. Any other word for what it is frees a server of no cap.
        if not cap or result.get("resultType") == "input_required":
            return result
        size = least_size(result)
        if size <= cap and "structuredContent" not in result:
            return result
        if result.get("isError") is True:
            cap = max(cap, LEAST_OF_ERRORS)
        rough = size + weight(result.get("structuredContent"))
        if rough <= _SMALL and (texts := texts_of(result)).characters <= cap:
            return result
        # To compare a text with structured content takes memory, too.
        async with self._turns_for(rough).take(client.principal.id):
            texts = await asyncio.to_thread(texts_of, result)
            if texts.characters <= cap:
                return result
            if self._turns_for(texts.characters) is self._turns_for(rough):
                return await self._abridge(result, texts, cap, client, tool)
        async with self._turns_for(texts.characters).take(client.principal.id):
            return await self._abridge(result, texts, cap, client, tool)

    async def fit_raw(self, pieces: list[Part], client: Client, tool: RegisteredTool) -> Message | None:
        """The same of a result that is still JSON, in pieces; `None` if it may go on as it is."""
        cap, size = self.cap(client, tool), sum(map(len, pieces))
        if not cap or size <= cap:
            return None
        # While others are at it, it waits as the bytes it is.
        async with self._turns_for(size).take(client.principal.id):
            read = await asyncio.to_thread(parse_result, pieces) if size > _SMALL else parse_result(pieces)
            if read is None:
                return None
            texts = await asyncio.to_thread(texts_of, read)
            if read.get("isError") is True:
                cap = max(cap, LEAST_OF_ERRORS)
            if texts.characters <= cap:
                return None
            return await self._abridge(read, texts, cap, client, tool)

    def _turns_for(self, size: int) -> Turns:
        return self._turns if size <= _LARGE else self._turns_of_large

    async def _abridge(
        self, result: Message, texts: ResultTexts, cap: int, client: Client, tool: RegisteredTool
    ) -> Message:
        json = await asyncio.to_thread(find_json, texts)
        whole = texts.whole if len(texts.parts) == 1 else await asyncio.to_thread(lambda: texts.whole)
        kept = await self.keeper.keep(whole, _facts(json, tool), owner_of(client))
        takers = () if kept is None else self._list_takers(client)
        note = Note(kept, expiry(time.time()), self._can_read(client), _knows_links(client), takers)
        schema = tool.definition.get("outputSchema")
        abridged = await asyncio.to_thread(abridge, result, texts, json, cap, note, schema)
        logger().info("result.abridged", tool=tool.name, characters=texts.characters, cap=cap, kept=kept is not None)
        return abridged

    async def read(self, wanted: ResultQuery, client: Client, asked: int | None = None) -> dict[str, Any]:
        """What the tool that reads kept results answers."""
        return await self.reader.read(wanted, owner_of(client), self._page(client, asked))

    def _page(self, client: Client, asked: int | None) -> int:
        if asked is not None:
            return asked or _PAGE_WITHOUT_CAP
        return self.caps.find_page(client) or USUAL_CAP

    async def read_resource(self, uri: str, caller: Caller) -> Message:
        """A whole result as a resource. Its room is taken until the answer is written, over HTTP: a client may take its
        time to read it, or never do."""
        result_id, owner = uri.removeprefix(URI), owner_of(caller.client)
        give_back = self._room.take(owner.principal, await self.reader.measure(result_id, owner))
        try:
            return await self._read_whole(uri, result_id, owner)
        finally:
            if caller.answering is None:
                give_back()
            else:
                # Also of a client that went away meanwhile.
                caller.answering.on_end(give_back)

    async def _read_whole(self, uri: str, result_id: str, owner: ResultOwner) -> Message:
        kept, text = await self.reader.text(result_id, owner)
        is_json = kept.json == (0, kept.characters)
        kind = "application/json" if is_json else "text/plain"
        return {"contents": [{"uri": uri, "mimeType": kind, "text": carry(text)}]}

    def _list_takers(self, client: Client) -> tuple[str, ...]:
        """The servers of a client whose tools take kept results."""
        servers = self._settings().servers.items()
        allowed = (name for name, spec in servers if spec.result_handles and spec.is_usable)
        return tuple(name for name in allowed if client.filter.admits_server(name))

    async def fill(
        self, arguments: Mapping[str, Any], schema: Any, client: Client, spec: ServerSpec, sending: ExitStack
    ) -> Mapping[str, Any]:
        """Arguments of a call with the kept results that they name, where the server takes them; `ToolFailure` if it
        does not. The schema is what its tool says of its arguments. Their room is taken as long as the call is
        `sending` them."""
        owner = owner_of(client)
        if not spec.result_handles:
            await refuse_handles(arguments, self.reader, owner, spec.name)
            return arguments
        if not has_handle(arguments):
            return arguments
        return await fill_handles(
            arguments, schema, self.reader, owner, lambda size: sending.callback(self._room.take(owner.principal, size))
        )


def is_result_uri(uri: object) -> bool:
    """Whether a resource is a kept result."""
    return isinstance(uri, str) and uri.startswith(URI)


def _facts(json: JsonPart | None, tool: RegisteredTool) -> dict[str, Any]:
    facts: dict[str, Any] = {"tool": tool.name}
    if json is not None:
        facts |= {"start": json.start, "end": json.end}
        if json.records is not None:
            facts["path"] = json.path
    return facts


def _knows_links(client: Client) -> bool:
    """Whether it can read resources, and knows links to them."""
    if not is_agent(client):
        return client.name == REST_CLIENT
    return client.era == "modern" or (client.protocol_version or LATEST_MODERN) >= _LINKS_SINCE
