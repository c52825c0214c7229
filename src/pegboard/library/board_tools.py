"""The tools of a board as models are offered them."""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.board import Board
from pegboard.catalog.finder import is_discovery_tool, is_result_reader
from pegboard.configured_servers import find_unlisted
from pegboard.formats import Conversions, NameBook
from pegboard.tool import RegisteredTool

_INSTRUCTIONS_LENGTH = 200


class BoardTools:
    """`ModelTools` of a board: names and conversions are kept, everything else is read when it is asked for."""

    def __init__(self, board: Board, board_key: str) -> None:
        self.conversions = Conversions()
        # Tools that the program registered itself: a model always sees them.
        self.registered: set[str] = set()
        self._board = board
        self._board_key = board_key
        self._book: tuple[int, NameBook] | None = None

    @property
    def names(self) -> NameBook:
        """What providers call the tools, made anew when they have changed."""
        generation = self._board.registry.generation
        if self._book is None or self._book[0] != generation:
            # With the tools of disabled servers: a model that still calls one gets an error that says so.
            self._book = (generation, NameBook(self._board.all_tools()))
        return self._book[1]

    def available(self) -> Mapping[str, RegisteredTool]:
        """Tools of servers that can be used, and static ones, in the order of their names at providers."""
        hidden = find_unlisted(self._board.servers)
        tools = (tool for tool in self._board.registry.all() if tool.server_name not in hidden)
        return {tool.name: tool for tool in self.names.sort(tools)}

    def visible(self) -> frozenset[str]:
        """Discovery tools, what reads large results, and what the program registered, the settings pin or somebody
        loaded."""
        chosen = (*self.registered, *self._board.settings.pinned, *self._board.loaded.on(self._board_key))
        readers = (name for name, tool in self._board.registry.static().items() if is_result_reader(tool))
        return self.discovery().union(chosen, readers)

    def discovery(self) -> frozenset[str]:
        """The tools that find other tools."""
        return frozenset(name for name, tool in self._board.registry.static().items() if is_discovery_tool(tool))

    def instructions(self) -> Mapping[str, str]:
        """The beginning of what each server says about itself."""
        said = self._board.discovery.instructions
        return {server: text[:_INSTRUCTIONS_LENGTH] for server, text in said.items() if text}
