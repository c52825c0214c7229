"""A cache of clients of the modern era, which say who they are with every request: found out once and kept."""

from __future__ import annotations

from dataclasses import replace

from pegboard import exactjson
from pegboard.clients.client import Client, identify
from pegboard.clients.endpoint import Endpoint
from pegboard.lru_dict import LruDict
from pegboard.protocol import raw_json
from pegboard.protocol.eras import (
    CAP_KEY,
    CLIENT_CAPABILITIES_KEY,
    HOP_KEYS,
    LATEST_MODERN,
    LOG_LEVEL_KEY,
    RELATED_TASK_KEY,
    VERSION_KEY,
)
from pegboard.protocol.members import meta_problem
from pegboard.servers.attribution import SERVER_KEY

_CAPACITY = 4096
# Nobody says more of itself than this with every request.
MAX_META = 4096
# Members of `_meta` that the full path has to look at.
_NO_PLAIN_META = frozenset({"progressToken", LOG_LEVEL_KEY, RELATED_TASK_KEY, CAP_KEY})


class ClientCache:
    """Clients by their endpoint and the `_meta` of their requests; the least recently used are forgotten first."""

    def __init__(self) -> None:
        self._clients: LruDict[tuple[Endpoint, bytes], Client | None] = LruDict(_CAPACITY)

    def get(self, endpoint: Endpoint, meta: bytes) -> Client | None:
        """The client that sends this `_meta`; `None` where the full path has to look at it."""
        if len(meta) > MAX_META:
            return None
        key = (endpoint, meta)
        if key not in self._clients:
            self._clients[key] = _read(endpoint, meta)
        return self._clients.use(key)


def _read(endpoint: Endpoint, text: bytes) -> Client | None:
    parts = raw_json.members(text)
    if parts is None or not _NO_PLAIN_META.isdisjoint(parts) or meta_problem(parts) is not None:
        return None
    try:
        meta = exactjson.parse_object(text)
    except exactjson.NotJson:
        return None
    capabilities = exactjson.as_object(meta.get(CLIENT_CAPABILITIES_KEY))
    if meta.get(VERSION_KEY) != LATEST_MODERN or capabilities is None:
        return None
    kept = {name: value for name, value in parts.items() if name not in HOP_KEYS}
    return replace(
        identify(endpoint, "modern", None, capabilities, meta),
        forwarded_meta=raw_json.join(kept) if kept else None,
        narrows=SERVER_KEY in parts or "pegboard/prefix" in parts,
    )
