"""Caps: how many characters of text a result may have, for which client and which tool.

The request says it (`_meta["pegboard/cap"]`), else the config for the tool, the server, the client, or all. Where
nobody says anything there is no cap for whoever is listed every tool, and the usual one for whoever searches for tools.
People and programs (REST, the command line, Python) get everything, unless they ask.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase

from pegboard.clients.client import REST_CLIENT, Client
from pegboard.config import Settings
from pegboard.config.results import LEAST_CAP, MOST_CAP
from pegboard.exactjson import as_object
from pegboard.listing.lists import Lists
from pegboard.protocol.codes import INVALID_PARAMS
from pegboard.protocol.eras import CAP_KEY
from pegboard.servers.errors import RpcError
from pegboard.servers.message import Params
from pegboard.tool import RegisteredTool

USUAL_CAP = 40_000
# How a request says that there is none, besides 0.
OFF = "off"
# Where a tool says how long its results may become for the clients that go by it, and the most that it can say.
OWN_CAP_KEY, MOST_OWN_CAP = "anthropic/maxResultSizeChars", 500_000
# An error is there to be read.
LEAST_OF_ERRORS = 10_000
# What clients cut a result to by themselves, where that is less than the usual cap: what they cut is lost.
CLIENT_CAPS: Mapping[str, int] = {
    # About 10,000 tokens; the middle is taken out.
    "codex-mcp-client": 30_000,
    # 10 kB, without a word.
    "github-copilot-developer": 10_000,
    "copilot-cli": 10_000,
}


class Caps:
    """Finds the cap of a call."""

    def __init__(self, settings: Callable[[], Settings], lists: Lists, can_read: Callable[[Client], bool]) -> None:
        self._settings = settings
        self._lists = lists
        # Whether a client has the tool that reads what was left out.
        self._can_read = can_read
        # The smallest cap that any call could have: what has no more bytes is never too large. Every call asks.
        self.least = _find_least(settings())

    def apply(self, settings: Settings) -> None:
        """Take over other settings."""
        self.least = _find_least(settings)

    def find(self, client: Client, tool: RegisteredTool, asked: int | None = None) -> int:
        """How many characters a result of this tool may have for this client; 0 for any number."""
        if asked is not None:
            return asked
        if not is_agent(client):
            return _match(self._settings().results.clients, client.name) or 0
        return self._find(tool, lambda: self.find_page(client), client.name)

    def find_for_program(self, tool: RegisteredTool, usual: int) -> int:
        """The same where a program hands the result to a model; `usual` is what it takes if the config says nothing."""
        cap = self._settings().results.cap
        return self._find(tool, lambda: usual if cap is None else cap)

    def _find(self, tool: RegisteredTool, general: Callable[[], int], client: str = "") -> int:
        if (of_tool := _match(self._settings().results.tools, tool.name)) is not None:
            return of_tool
        spec = self._settings().servers.get(tool.server_name or "")
        if spec is not None and spec.results_cap is not None:
            return spec.results_cap
        cap = general()
        # What a tool says of itself lifts no cap that somebody set for it, and none of a client that would cut it.
        return max(cap, _own_cap(tool)) if cap and client not in CLIENT_CAPS else cap

    def find_page(self, client: Client) -> int:
        """How many characters a page of a kept result may have, by what the config says of its client; 0 if nothing."""
        own = _match(self._settings().results.clients, client.name)
        return own if own is not None else self._find_general(client)

    def _find_general(self, client: Client) -> int:
        cap = self._settings().results.cap
        if cap is None:
            is_searching = self._lists.scope(client.list_key) == "chosen" and self._can_read(client)
            cap = USUAL_CAP if is_searching else 0
        return min(cap, CLIENT_CAPS.get(client.name, cap))


def is_agent(client: Client) -> bool:
    """Whether what it is given goes to a model: it came over MCP."""
    return client.name != REST_CLIENT and (client.session is not None or client.era == "modern")


def request_cap(params: Params | None) -> int | None:
    """The cap that a request asks for; `RpcError` where it is none."""
    meta = as_object((params or {}).get("_meta"))
    asked = None if meta is None else meta.get(CAP_KEY)
    if asked is None:
        return None
    if asked == OFF:
        return 0
    if problem := cap_problem(asked):
        raise RpcError(INVALID_PARAMS, f'_meta["{CAP_KEY}"] {problem}')
    return asked


def cap_problem(asked: object) -> str | None:
    """What is wrong with a cap that somebody asks for."""
    if isinstance(asked, int) and not isinstance(asked, bool) and (asked == 0 or LEAST_CAP <= asked <= MOST_CAP):
        return None
    return f'must be 0 or "{OFF}" (no cap), or a whole number from {LEAST_CAP} to {MOST_CAP}'


def _find_least(settings: Settings) -> int:
    usual = settings.results.cap is None
    built_in = [USUAL_CAP] if usual else []
    # A cap of all holds for known clients, too.
    built_in += CLIENT_CAPS.values() if usual or settings.results.cap else ()
    return min(filter(None, [*settings.caps, *built_in]), default=MOST_CAP)


def _own_cap(tool: RegisteredTool) -> int:
    said = (as_object(tool.definition.get("_meta")) or {}).get(OWN_CAP_KEY)
    if not isinstance(said, int) or isinstance(said, bool):
        return 0
    return min(max(said, 0), MOST_OWN_CAP)


def _match(caps: Mapping[str, int], name: str) -> int | None:
    if not caps or name in caps:
        return caps.get(name)
    return next((cap for pattern, cap in caps.items() if fnmatchcase(name, pattern)), None)
